import json
import shutil
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.report.page.run_groups import grouped, in_paper, without_lider
from liderlab.report.run_records import (
    Record,
    differing,
    essence,
    find_runs,
    names,
    read_all,
    seed_difference,
)
from liderlab.runs.folder import RunFolder


def test_a_finished_run_is_read_as_it_was_written(runs: Path) -> None:
    record = Record.read(runs / "er-ace-lider-1", "x")
    result = RunFolder(runs / "er-ace-lider-1").result()
    assert (record.name, record.state, record.label) == ("x", "finished", "er-ace + LiDER")
    assert (record.benchmark, record.tasks, record.buffer, record.seed) == ("synthetic", 3, 20, 1)
    assert record.metric("class_incremental", "faa") == result["class_incremental"]["faa"]
    assert record.metric("class_incremental", "fwt") is None
    assert record.matrix("task_incremental") == result["task_incremental"]["accuracy_matrix"]
    assert record.on_memory() == result["class_incremental"]["memory_accuracy"]


def test_a_method_without_memory_has_no_buffer(runs: Path) -> None:
    record = Record.read(runs / "joint")
    assert record.buffer is None
    assert record.on_memory() is None


def unfinished(runs: Path, into: Path) -> Path:
    """A run that was stopped after its second task."""
    shutil.copytree(runs / "er-ace-lider-0", into)
    (into / "result.json").unlink()
    lines = (into / "metrics.jsonl").read_text().splitlines(keepends=True)
    second = [i for i, line in enumerate(lines) if '"kind": "task"' in line][1]
    (into / "metrics.jsonl").write_text("".join(lines[: second + 1]))
    return into


def test_an_unfinished_run_tells_what_it_has(runs: Path, tmp_path: Path) -> None:
    path = unfinished(runs, tmp_path / "x")
    record, whole = Record.read(path), Record.read(runs / "er-ace-lider-0")
    assert record.state == "stopped"
    assert record.metric("class_incremental", "faa") is None
    assert record.matrix("class_incremental")[:2] == whole.matrix("class_incremental")[:2]
    assert record.matrix("class_incremental")[2] == [None] * 3
    assert record.on_memory()[1] == whole.on_memory()[1]
    with RunFolder(path).lock():
        assert Record.read(path).state == "running"


def test_runs_are_found_at_any_depth_once_and_in_order(runs: Path, tmp_path: Path) -> None:
    for name in ("a/seed10", "a/seed9", "b"):
        shutil.copytree(runs / "er-ace-0", tmp_path / name)
    found = find_runs([tmp_path, tmp_path / "b"])
    assert names(found) == ["a/seed9", "a/seed10", "b"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no run"):
        find_runs([tmp_path / "empty"])
    with pytest.raises(UserError, match="not a folder"):
        find_runs([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    "text",
    ["", "3", "{}", '{"config": {}}', '{"config": {"seed": 0}, "class_incremental": 3}'],
)
def test_damage_is_complained_of_and_left_out(runs: Path, tmp_path: Path, text: str) -> None:
    for name in ("good", "bad"):
        shutil.copytree(runs / "er-ace-0", tmp_path / name)
    (tmp_path / "bad/result.json").write_text(text)
    records, complaints = read_all([tmp_path])
    assert [record.name for record in records] == ["good"]
    assert len(complaints) == 1
    assert "damaged" in complaints[0]
    with pytest.raises(UserError, match="damaged"):
        read_all([tmp_path / "bad"])


def test_seeds_share_a_row_and_nothing_else_does(runs: Path) -> None:
    records, _ = read_all([runs])
    rows = {row.label: [run.name for run in row.runs] for row in grouped(records)}
    assert rows == {
        "er-ace": ["er-ace-0", "er-ace-1"],
        "er-ace + LiDER": ["er-ace-lider-0", "er-ace-lider-1"],
        "gmed": ["gmed"],
        "joint": ["joint"],
        "er": ["poisoned"],
    }
    assert all(row.note == "" for row in grouped(records))


def changed(record: Record, **training: float) -> Record:
    config = record.config | {"training": record.config["training"] | training}
    return Record(record.path, "other", record.state, config, record.result)


def test_rows_of_the_same_label_say_what_tells_them_apart(runs: Path) -> None:
    record = Record.read(runs / "er-ace-0")
    rows = grouped([record, changed(record, lr=0.5)])
    assert [row.note for row in rows] == [f"lr {record.config['training']['lr']}", "lr 0.5"]


def test_the_partner_is_the_row_that_differs_least(runs: Path) -> None:
    plain, lider = Record.read(runs / "er-ace-0"), Record.read(runs / "er-ace-lider-0")
    other, mine, with_lider = grouped([changed(plain, lr=0.5), plain, lider])
    partner = without_lider(with_lider, [other, mine, with_lider])
    assert partner is not None
    assert (partner.group, partner.also) == (mine, ())
    partner = without_lider(with_lider, [other, with_lider])
    assert partner is not None
    assert (partner.group, partner.also) == (other, ("training.lr",))
    assert without_lider(mine, [other, mine, with_lider]) is None
    assert without_lider(with_lider, [with_lider]) is None


def test_the_papers_numbers_are_looked_up_by_setting(runs: Path) -> None:
    paper = {
        ("synthetic", 20, "er-ace", True): {"faa": 1.0},
        ("cifar100", 20, "er-ace", True): {"faa": 2.0},
        ("synthetic", None, "joint", False): {"faa": 3.0},
    }
    lider, joint = Record.read(runs / "er-ace-lider-0"), Record.read(runs / "joint")
    preset = lider.config | {"preset": "cifar100-500-er-ace-lider"}
    by_preset = Record(lider.path, "x", lider.state, preset, lider.result)
    found = [in_paper(grouped([record])[0], paper) for record in (lider, by_preset, joint)]
    assert found == [{"faa": 1.0}, {"faa": 2.0}, {"faa": 3.0}]
    assert in_paper(grouped([Record.read(runs / "er-ace-0")])[0], paper) == {}


def test_essence_knows_regularizers_without_options() -> None:
    bare = {"regularizers": {}, "seed": 0}
    assert differing([essence(bare), essence(bare | {"regularizers": {"x": {}}, "seed": 1})]) == [
        "regularizers.x"
    ]


def test_result_json_is_all_that_is_read_of_a_finished_run(runs: Path, tmp_path: Path) -> None:
    """So that listing many is quick: YAML is slow to read."""
    shutil.copytree(runs / "er-ace-0", tmp_path / "x")
    (tmp_path / "x/config.yaml").write_text("seed: 7")
    assert (
        Record.read(tmp_path / "x").seed
        == json.loads((tmp_path / "x/result.json").read_text())["config"]["seed"]
    )


def test_without_a_common_seed_the_means_are_subtracted() -> None:
    apart = seed_difference({0: 5.0, 2: 7.0}, {1: 4.0})
    assert apart is not None
    assert (apart.mean, apart.half, apart.n) == (2.0, None, 0)
    assert seed_difference({}, {1: 4.0}) is None
