"""The ledger's number stands beside a row of the very same configuration, and no other."""

from dataclasses import replace
from pathlib import Path

from liderlab.paper.ledger.record import LedgerRecord, Metrics
from liderlab.paper.studies.cases import Case
from liderlab.report.page.ledger_lookup import in_ledger
from liderlab.report.page.run_groups import grouped
from liderlab.report.run_records import read_all


def kept(config: dict, seed: int, faa: float) -> LedgerRecord:
    metrics = Metrics(faa=faa, ff=1.0, bwt=None, fwt=None, aia=None)
    case = replace(Case("cifar100", 500, "er-ace"), seed=seed)
    facts = {"case": case, "scale": "cpu", "config": {**config, "seed": seed}}
    return LedgerRecord.model_construct(class_incremental=metrics, **facts)


def test_only_the_same_configuration_is_told(runs: Path) -> None:
    groups = grouped(read_all([runs])[0])
    config = groups[0].first.config
    records = [kept(config, 0, 20.0), kept(config, 1, 22.0)]
    found = in_ledger(groups, records)
    assert found[0] == {"mean": 21.0, "std": 1.4142, "n": 2}
    assert found[1:] == [{}] * (len(groups) - 1)
    other = [kept({**config, "training": {**config["training"], "lr": 9.0}}, 0, 20.0)]
    assert in_ledger(groups, other) == [{}] * len(groups)
    kept_tasks = [kept({**config, "keep_tasks": True, "threads": 7}, 0, 20.0)]
    assert in_ledger(groups, kept_tasks)[0]["n"] == 1  # how it was executed does not matter
