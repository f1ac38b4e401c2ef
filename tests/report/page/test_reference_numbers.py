"""Numbers of the paper and the ledger stand beside rows of the same experiment only."""

from dataclasses import replace
from pathlib import Path

from liderlab.paper.ledger.record import LedgerRecord, Metrics
from liderlab.paper.studies.cases import Case
from liderlab.report.page.reference_numbers import in_ledger, in_paper
from liderlab.report.run_records import RunRecord, read_all
from liderlab.report.seed_groups import group_by_seed


def kept(config: dict, seed: int, faa: float) -> LedgerRecord:
    metrics = Metrics(faa=faa, ff=1.0, bwt=None, fwt=None, aia=None)
    case = replace(Case("cifar100", 500, "er-ace"), seed=seed)
    facts = {"case": case, "scale": "cpu", "config": {**config, "seed": seed}}
    return LedgerRecord.model_construct(class_incremental=metrics, **facts)


def test_the_ledger_matches_the_same_configuration_only(runs: Path) -> None:
    groups = group_by_seed(read_all([runs])[0])
    config = groups[0].first.config
    records = [kept(config, 0, 20.0), kept(config, 1, 22.0)]
    found = in_ledger(groups, records)
    assert found[0] == {"mean": 21.0, "std": 1.4142, "n": 2}
    assert found[1:] == [{}] * (len(groups) - 1)
    other = [kept({**config, "training": {**config["training"], "lr": 9.0}}, 0, 20.0)]
    assert in_ledger(groups, other) == [{}] * len(groups)
    kept_tasks = [kept({**config, "keep_tasks": True, "threads": 7}, 0, 20.0)]
    assert in_ledger(groups, kept_tasks)[0]["n"] == 1  # how it was executed does not matter


def test_the_papers_numbers_are_looked_up_by_setting(runs: Path) -> None:
    paper = {
        ("synthetic", 20, "er-ace", True): {"faa": 1.0},
        ("cifar100", 20, "er-ace", True): {"faa": 2.0},
        ("synthetic", None, "joint", False): {"faa": 3.0},
    }
    lider, joint = RunRecord.read(runs / "er-ace-lider-0"), RunRecord.read(runs / "joint")
    preset = lider.config | {"preset": "cifar100-500-er-ace-lider"}
    by_preset = RunRecord(lider.path, "x", lider.state, preset, lider.result)
    found = [in_paper(group_by_seed([record])[0], paper) for record in (lider, by_preset, joint)]
    assert found == [{"faa": 1.0}, {"faa": 2.0}, {"faa": 3.0}]
    assert in_paper(group_by_seed([RunRecord.read(runs / "er-ace-0")])[0], paper) == {}
