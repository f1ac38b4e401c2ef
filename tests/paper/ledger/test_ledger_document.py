"""The ledger's numbers against sums done by hand, and every cell with exactly one status."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from liderlab.paper import numbers
from liderlab.paper.ledger.cells import case_of, name_of, unknown_cell
from liderlab.paper.ledger.deviations import STATUSES
from liderlab.paper.ledger.ledger_document import all_cells, as_json, assemble
from liderlab.paper.studies.cases import Case, Request, config_of

ALONE = Case("cifar100", 500, "er-ace")
LIDER = Case("cifar100", 500, "er-ace", "lider", "controlled")


def seeded(record, case, values, **more):
    return [record(replace(case, seed=seed), value, **more) for seed, value in enumerate(values)]


def test_every_printed_cell_has_a_name_a_run_and_a_status(record) -> None:
    ledger = assemble(seeded(record, ALONE, [20.0]))
    names = [row["cell"] for row in ledger["cells"]]
    assert names == [name_of(cell) for cell in numbers.cells()]
    assert len(set(names)) == 436
    counts = Counter(row["status"].partition(":")[0] for row in ledger["cells"])
    assert set(counts) <= set(STATUSES)
    assert sum(counts.values()) == ledger["totals"]["cells"] == 436
    for status in STATUSES:
        assert ledger["totals"][status] == counts[status]
    for row in ledger["cells"]:
        assert (row["ours"] is None) == (row["status"] == "not measured")
        assert row["command"]
    for cell in numbers.cells():
        config_of(case_of(cell), Request("paper"), ())  # which refuses what cannot be run


def test_mean_spread_and_paired_interval(record) -> None:
    """By hand: 20, 22, 24 has mean 22, s = 2; gains 1, 2, 6 have mean 3, s = √7; with t = 4.3027,
    22 ± 4.3027·2/√3 and 3 ± 4.3027·√7/√3."""
    runs = seeded(record, ALONE, [20.0, 22.0, 24.0]) + seeded(record, LIDER, [21.0, 24.0, 30.0])
    cells = all_cells(assemble(runs))
    plain, treated = (cells[f"faa/cifar100/500/er-ace{more}"] for more in ("", "+lider"))
    ours = plain["ours"]
    assert (ours["mean"], ours["std"], ours["n"]) == (22.0, 2.0, 3)
    assert (ours["low"], ours["high"]) == pytest.approx((17.0317, 26.9683), abs=1e-4)
    assert ours["seeds"] == {"0": 20.0, "1": 22.0, "2": 24.0}
    assert plain["gain"] is None
    gain = treated["gain"]
    assert gain["mean"] == 3.0
    assert (gain["low"], gain["high"]) == pytest.approx((-3.5724, 9.5724), abs=1e-4)
    assert (treated["paper"], treated["paper_gain"]) == (38.43, 1.95)
    assert treated["records"] == [
        f"cpu-cifar100-500-er-ace+lider-controlled-seed{s}" for s in range(3)
    ]


def test_only_common_seeds_are_paired_and_one_has_no_interval(record) -> None:
    runs = [*seeded(record, ALONE, [20.0, 22.0]), record(replace(LIDER, seed=1), 23.0)]
    cells = all_cells(assemble(runs))
    treated = cells["faa/cifar100/500/er-ace+lider"]
    assert treated["gain"] == {"mean": 1.0, "low": None, "high": None, "p": None, "n": 1}
    assert treated["ours"]["std"] is None
    other = [record(replace(LIDER, seed=5), 23.0), *seeded(record, ALONE, [20.0])]
    assert all_cells(assemble(other))["faa/cifar100/500/er-ace+lider"]["gain"] is None


def test_a_smaller_scale_is_stated_and_so_is_another_learning_rate(record) -> None:
    cells = all_cells(assemble(seeded(record, ALONE, [20.0]) + seeded(record, LIDER, [21.0])))
    small = "smaller scale: epochs 4 instead of 50, width 8 instead of 64"
    assert cells["faa/cifar100/500/er-ace"]["status"] == small
    assert cells["faa/cifar100/500/er-ace+lider"]["status"] == f"{small}, lr 0.03 instead of 0.1"
    assert cells["faa/cifar100/2000/er-ace"]["status"] == "not measured"
    online = record(Case("cifar100-online", 500, "er-ace"), 17.0, scale="paper")
    cells = all_cells(assemble([online]))
    assert cells["single-epoch/cifar100-online/500/er-ace/faa"]["status"] == "paper scale"
    assert cells["single-epoch/cifar100-online/500/er-ace/ff"]["ours"]["mean"] == 10.0


def test_the_configuration_nearest_to_the_paper_fills_its_cell(record) -> None:
    tuned = replace(LIDER, column="tuned")
    runs = seeded(record, LIDER, [21.0, 22.0]) + seeded(record, tuned, [25.0])
    cells = all_cells(assemble(runs))
    assert cells["faa/cifar100/500/er-ace+lider"]["ours"]["mean"] == 25.0
    assert cells["ours/cifar100/500/er-ace+lider/controlled/faa"]["ours"]["mean"] == 21.5
    whole = record(replace(LIDER, seed=7), 37.0, scale="paper")
    cells = all_cells(assemble([*runs, whole]))
    assert cells["faa/cifar100/500/er-ace+lider"]["ours"]["mean"] == 37.0
    assert cells["faa/cifar100/500/er-ace+lider"]["status"] == "paper scale: lr 0.03 instead of 0.1"


def test_one_run_fills_its_cell_in_every_table(record) -> None:
    cells = all_cells(assemble(seeded(record, LIDER, [21.0])))
    tables = {name.partition("/")[0] for name, row in cells.items() if row["ours"]}
    metrics = ("faa", "ff")
    assert tables == {"ours", "fixed-target"} | {
        f"{table}{metric}" for table in ("", "regularizers-", "target-") for metric in metrics
    }


def test_a_metric_that_is_not_defined_is_not_measured(record) -> None:
    cells = all_cells(assemble(seeded(record, Case("cifar100", None, "finetune"), [9.0], ff=None)))
    assert cells["faa/cifar100/finetune"]["ours"]["mean"] == 9.0
    assert cells["ff/cifar100/finetune"]["status"] == "not measured"


def test_ablations_are_compared_with_the_usual_lider(record) -> None:
    batch = replace(LIDER, estimator="batch")
    fixed = replace(LIDER, addition="lider-fixed")
    runs = [
        *seeded(record, LIDER, [21.0, 23.0, 99.0]),
        *seeded(record, batch, [22.0, 25.0]),
        *seeded(record, fixed, [20.0, 21.0]),
    ]
    ledger = assemble(runs)
    found = {row["comparison"]: row for row in ledger["comparisons"]}
    assert found["batch against spatial estimator"]["faa"]["mean"] == 1.5
    assert found["batch against spatial estimator"]["usual"]["mean"] == 22.0  # the common seeds'
    assert found["fixed against learned targets"]["faa"]["mean"] == -1.5
    assert len(found) == 2
    own = {row["cell"] for row in ledger["ours"]}
    assert "ours/cifar100/500/er-ace+lider-batch/controlled/faa" in own
    assert ledger["totals"]["seconds_cpu"] == 350


def test_other_weights_are_compared_and_fill_no_cell_of_the_paper(record) -> None:
    stronger = replace(LIDER, alpha=1.25, beta=3.75)
    runs = [
        *seeded(record, ALONE, [20.0, 21.0]),
        *seeded(record, LIDER, [21.0, 23.0]),
        *seeded(record, stronger, [24.0, 28.0]),
    ]
    ledger = assemble(runs)
    (row,) = ledger["comparisons"]
    assert (row["comparison"], row["faa"]["mean"]) == ("α 1.25, β 3.75 against the preset's", 4.0)
    cells = all_cells(ledger)
    assert cells["faa/cifar100/500/er-ace+lider"]["ours"]["mean"] == 22.0
    own = cells["ours/cifar100/500/er-ace+lider-a1.25-b3.75/controlled/faa"]
    assert own["gain"]["mean"] == 5.5  # over the method alone
    assert ledger["measured"][-1]["label"] == "ER-ACE + LiDER (α 1.25, β 3.75) (controlled)"


def test_runs_of_another_size_are_another_configuration(record) -> None:
    changed = record(replace(ALONE, seed=1), 30.0)
    config = {**changed.config, "training": {**changed.config["training"], "epochs": 5}}
    runs = [record(ALONE, 20.0), changed.model_copy(update={"config": config})]
    ledger = assemble(runs)
    assert len(ledger["measured"]) == 2
    assert all_cells(ledger)["faa/cifar100/500/er-ace"]["ours"]["n"] == 1


def test_the_json_reads_back(record) -> None:
    ledger = assemble(seeded(record, LIDER, [21.0]))
    assert json.loads(as_json(ledger)) == ledger
    assert json.loads(as_json(assemble([])))["measured"] == []


def test_an_unknown_cell_has_near_matches() -> None:
    names = [name_of(cell) for cell in numbers.cells()]
    message = str(unknown_cell("faa/cifar100/500/er_ace+lider", names))
    assert "'faa/cifar100/500/er-ace+lider'" in message
    assert "did you mean" not in str(unknown_cell("?", names))
