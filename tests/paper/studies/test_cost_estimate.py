"""Estimates of costs against measured ones, of the kind of machine that they are stated for."""

import pytest

from liderlab.config.merging import stored_config
from liderlab.paper.ledger.record import LedgerRecord, read_records
from liderlab.paper.studies import find_study
from liderlab.paper.studies.cases import Request
from liderlab.paper.studies.cost_estimate import estimate_cost, run_seconds

MEASURED = {
    "main": 24.2,
    "regularizers": 20.8,
    "target": 16.0,
    "fixed-target": 14.1,
    "poisoning": 21.3,
    "single-epoch": 10.4,
    "sensitivity": 12.2,
    "guessing-game": 11.9,
    "decision-surface": 13.3,
    "lipschitz-vs-buffer": 13.4,
}
"""Processor seconds of `lider study NAME --scale smoke --threads 1` on an AMD EPYC server."""
TIMED = [record for record in read_records(None) if record.seconds_cpu]


@pytest.mark.parametrize("record", TIMED, ids=lambda record: record.run)
def test_runs_of_the_ledger(record: LedgerRecord) -> None:
    estimate = run_seconds(stored_config(record.config).model_dump())
    assert 1 / 1.5 < estimate / record.seconds_cpu < 1.5  # type: ignore[operator]


@pytest.mark.parametrize("name", MEASURED)
def test_studies_at_scale_smoke(name: str) -> None:
    assert (
        1 / 1.5 < estimate_cost(find_study(name), Request("smoke")).seconds / MEASURED[name] < 1.5
    )
