"""A cell that is run again agrees with its record, or the difference is judged."""

from dataclasses import replace
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.paper.ledger.ledger_document import assemble
from liderlab.paper.ledger.record_collection import collect_records
from liderlab.paper.ledger.reproduction_check import (
    ONE_SEED,
    compare,
    record_of_seed,
    records_of_cell,
    repeat_run,
    seed_tolerance,
)
from liderlab.paper.studies.cases import Case

CASE = Case("cifar100", 500, "er-ace")


def test_a_repeated_run_is_equal_to_the_bit(measured: Path, tmp_path: Path) -> None:
    records = collect_records(measured).records
    (one,) = records_of_cell(
        "single-epoch/cifar100-online/500/er-ace+lider/ff", assemble(records), records
    )
    now = repeat_run(one, tmp_path / "again")
    outcome = compare(one, now, [one])
    assert (outcome.other_versions, outcome.differences) == ({}, {})
    assert outcome.agrees
    assert now.network == one.network is not None
    changed = one.model_copy(update={"network": "00"})
    assert not compare(changed, now, [changed]).agrees


def changed(record, **values):
    metrics = record.class_incremental.model_copy(update=values)
    return record.model_copy(update={"class_incremental": metrics})


def elsewhere(record):
    return record.model_copy(update={"versions": {**record.versions, "torch": "3.0"}})


def test_with_the_same_versions_nothing_may_differ(record) -> None:
    one = record(CASE, 20.0)
    outcome = compare(one, changed(one, faa=20.01), [one])
    assert outcome.differences == {"faa": pytest.approx(0.01)}
    assert not outcome.agrees
    matrix = one.model_copy(update={"matrix": [[90.0, None], [15.0, 25.5]]})
    assert compare(one, matrix, [one]).differences == {"accuracy matrix": 0.5}
    assert not compare(one, matrix, [one]).agrees
    assert compare(one, changed(one, faa=20.01), [one], tolerance=0.1).agrees


def test_with_other_versions_the_spread_of_the_seeds_is_allowed(record) -> None:
    """By hand: 20, 22, 24 has s = 2, and 4.3027 · 2 · √(4/3) = 9.937."""
    runs = [record(replace(CASE, seed=s), v) for s, v in enumerate((20.0, 22.0, 24.0))]
    assert seed_tolerance(runs, "faa") == pytest.approx(9.9366, abs=1e-3)
    assert seed_tolerance(runs[:1], "faa") == ONE_SEED
    near, far = (elsewhere(changed(runs[0], faa=value)) for value in (29.9, 30.0))
    assert compare(runs[0], near, runs).agrees
    assert not compare(runs[0], far, runs).agrees
    assert compare(runs[0], near, runs).other_versions == {"torch": ("2.13", "3.0")}
    weights = elsewhere(runs[0]).model_copy(update={"network": "00"})
    assert compare(runs[0], weights, runs).agrees  # other machines round otherwise


def test_a_cell_that_was_not_measured_cannot_be_checked(record) -> None:
    runs = [record(replace(CASE, seed=2), 20.0)]
    ledger = assemble(runs)
    with pytest.raises(UserError, match=r"was not measured.*lider run --preset cub200-400-er-ace"):
        records_of_cell("faa/cub200/400/er-ace", ledger, runs)
    with pytest.raises(UserError, match="did you mean"):
        records_of_cell("faa/cifar100/500/er_ace", ledger, runs)
    found = records_of_cell("faa/cifar100/500/er-ace", ledger, runs)
    assert record_of_seed(found, None).seed == record_of_seed(found, 2).seed == 2
    with pytest.raises(UserError, match="seed 0 was not measured; these were: 2"):
        record_of_seed(found, 0)
