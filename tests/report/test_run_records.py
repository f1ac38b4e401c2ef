import json
import shutil
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.report.run_records import RunRecord, find_runs, read_all, short_names
from liderlab.runs.folder import RunFolder


def test_a_finished_run_is_read_as_it_was_written(runs: Path) -> None:
    record = RunRecord.read(runs / "er-ace-lider-1", "x")
    result = RunFolder(runs / "er-ace-lider-1").result()
    assert (record.name, record.state, record.label) == ("x", "finished", "er-ace + LiDER")
    assert (record.benchmark, record.tasks, record.buffer, record.seed) == ("synthetic", 3, 20, 1)
    assert record.metric("class_incremental", "faa") == result["class_incremental"]["faa"]
    assert record.metric("class_incremental", "fwt") is None
    assert record.matrix("task_incremental") == result["task_incremental"]["accuracy_matrix"]
    assert record.on_memory() == result["class_incremental"]["memory_accuracy"]


def test_a_method_without_memory_has_no_buffer(runs: Path) -> None:
    record = RunRecord.read(runs / "joint")
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


def test_an_unfinished_run_shows_its_tasks_so_far(runs: Path, tmp_path: Path) -> None:
    path = unfinished(runs, tmp_path / "x")
    record, whole = RunRecord.read(path), RunRecord.read(runs / "er-ace-lider-0")
    assert record.state == "stopped"
    assert record.metric("class_incremental", "faa") is None
    assert record.matrix("class_incremental")[:2] == whole.matrix("class_incremental")[:2]
    assert record.matrix("class_incremental")[2] == [None] * 3
    assert record.on_memory()[1] == whole.on_memory()[1]
    with RunFolder(path).lock():
        assert RunRecord.read(path).state == "running"


def test_runs_are_found_at_any_depth_once_and_in_order(runs: Path, tmp_path: Path) -> None:
    for name in ("a/seed10", "a/seed9", "b"):
        shutil.copytree(runs / "er-ace-0", tmp_path / name)
    found = find_runs([tmp_path, tmp_path / "b"])
    assert short_names(found) == ["a/seed9", "a/seed10", "b"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no run"):
        find_runs([tmp_path / "empty"])
    with pytest.raises(UserError, match="not a folder"):
        find_runs([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    "text",
    ["", "3", "{}", '{"config": {}}', '{"config": {"seed": 0}, "class_incremental": 3}'],
)
def test_a_damaged_result_is_left_out_with_a_message(runs: Path, tmp_path: Path, text: str) -> None:
    for name in ("good", "bad"):
        shutil.copytree(runs / "er-ace-0", tmp_path / name)
    (tmp_path / "bad/result.json").write_text(text)
    records, problems = read_all([tmp_path])
    assert [record.name for record in records] == ["good"]
    assert len(problems) == 1
    assert "damaged" in problems[0]
    with pytest.raises(UserError, match="damaged"):
        read_all([tmp_path / "bad"])


def test_of_a_finished_run_only_result_json_is_read(runs: Path, tmp_path: Path) -> None:
    """So that listing many is quick: YAML is slow to read."""
    shutil.copytree(runs / "er-ace-0", tmp_path / "x")
    (tmp_path / "x/config.yaml").write_text("seed: 7")
    assert (
        RunRecord.read(tmp_path / "x").seed
        == json.loads((tmp_path / "x/result.json").read_text())["config"]["seed"]
    )
