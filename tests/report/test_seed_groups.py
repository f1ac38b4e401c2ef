"""Seeds of one experiment share a row; rows are paired with and without regularisers."""

from pathlib import Path

from liderlab.report.run_records import RunRecord, read_all
from liderlab.report.seed_groups import (
    differing,
    experiment_fields,
    group_by_seed,
    pairs_without,
    seed_difference,
)


def test_seeds_share_a_row_and_nothing_else_does(runs: Path) -> None:
    records, _ = read_all([runs])
    rows = {row.label: [run.name for run in row.runs] for row in group_by_seed(records)}
    assert rows == {
        "er-ace": ["er-ace-0", "er-ace-1"],
        "er-ace + LiDER": ["er-ace-lider-0", "er-ace-lider-1"],
        "gmed": ["gmed"],
        "joint": ["joint"],
        "er": ["poisoned"],
    }
    assert all(row.note == "" for row in group_by_seed(records))


def changed(record: RunRecord, **training: float) -> RunRecord:
    config = record.config | {"training": record.config["training"] | training}
    return RunRecord(record.path, "other", record.state, config, record.result)


def test_rows_of_one_label_name_their_differing_values(runs: Path) -> None:
    record = RunRecord.read(runs / "er-ace-0")
    rows = group_by_seed([record, changed(record, lr=0.5)])
    assert [row.note for row in rows] == [f"lr {record.config['training']['lr']}", "lr 0.5"]


def test_the_pair_without_lider_is_the_row_that_differs_least(runs: Path) -> None:
    plain, lider = RunRecord.read(runs / "er-ace-0"), RunRecord.read(runs / "er-ace-lider-0")
    other, mine, with_lider = group_by_seed([changed(plain, lr=0.5), plain, lider])
    (pair,) = pairs_without(with_lider, [other, mine, with_lider])
    assert (pair.without, pair.added, pair.also) == (mine, ("lider",), ())
    (pair,) = pairs_without(with_lider, [other, with_lider])
    assert (pair.without, pair.also) == (other, ("training.lr",))
    assert pairs_without(mine, [other, mine, with_lider]) == []
    assert pairs_without(with_lider, [with_lider]) == []


def test_a_regularizer_without_options_tells_experiments_apart() -> None:
    bare = {"regularizers": {}, "seed": 0}
    other = {"regularizers": {"x": {}}, "seed": 1}
    assert differing([experiment_fields(bare), experiment_fields(other)]) == ["regularizers.x"]


def test_without_a_common_seed_the_means_are_subtracted() -> None:
    apart = seed_difference({0: 5.0, 2: 7.0}, {1: 4.0})
    assert apart is not None
    assert (apart.mean, apart.half, apart.n) == (2.0, None, 0)
    assert seed_difference({}, {1: 4.0}) is None
