"""Runs with a memory on disk: their files, and that they resume to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.errors import UserError
from liderlab.runs.build import Run
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare
from liderlab.training.events import Event, StepDone

SMALL = {
    "benchmark": "synthetic",
    "backbone": {"width": 4},
    "training": {"epochs": 2},
    "checkpoint_every": 3,
}


class Crash(BaseException):
    """Stands for a killed process."""


def config(method: str, storage: str = "disk") -> RunConfig:
    options = {"fit_epochs": 3} if method == "gdumb" else {}
    given: dict[str, Any] = {"method": {"name": method, **options}, "memory": {"storage": storage}}
    return make_config(SMALL, given)


def crash_after(steps: int) -> Any:
    def listener(work: Run, event: Event) -> None:
        if isinstance(event, StepDone) and work.loop.steps == steps:
            raise Crash

    return listener


METHODS = ["gmed", "x-der-rpc", "icarl", "gdumb", "der++"]  # every policy, and the extra columns


@pytest.mark.parametrize("method", METHODS)
def test_a_crash_changes_nothing(method: str, tmp_path: Path) -> None:
    """Nor does the loss of the newest checkpoint: the one before still has its images."""
    run(config(method), tmp_path / "whole")
    for steps in (5, 10):
        with pytest.raises(Crash):
            run(config(method), tmp_path / "x", existing="resume", listener=crash_after(steps))
    folder = RunFolder(tmp_path / "x")
    newest, older = folder.checkpoints.files()
    newest.write_bytes(b"")
    assert older.exists()
    run(config(method), tmp_path / "x", existing="resume")
    assert compare(RunFolder(tmp_path / "whole"), folder) == []


def test_a_memory_on_disk_trains_like_one_in_ram(tmp_path: Path) -> None:
    results = [run(config("er", storage), tmp_path / storage) for storage in ("disk", "ram")]
    for setting in ("class_incremental", "task_incremental"):
        assert results[0][setting] == results[1][setting]
    assert (tmp_path / "disk" / "memory" / "x.rows").is_file()
    assert not (tmp_path / "ram" / "memory").exists()


def test_a_difference_in_the_images_is_seen(tmp_path: Path) -> None:
    for name in "ab":
        run(config("er"), tmp_path / name)
    one, other = (RunFolder(tmp_path / name) for name in "ab")
    assert compare(one, other) == []
    column = other.state()["memory"]["data"]["x"]
    data = bytearray((other.memory / "x.rows").read_bytes())
    data[int(column["place"][3]) * column["row_bytes"]] ^= 1
    (other.memory / "x.rows").write_bytes(data)
    assert compare(one, other) == ["checkpoint.memory.data.x"]


def test_missing_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        run(config("er"), tmp_path, listener=crash_after(8))
    (tmp_path / "memory" / "x.rows").unlink()
    with pytest.raises(UserError, match="has changed since this run's checkpoint"):
        run(config("er"), tmp_path, existing="resume")
    run(config("er"), tmp_path, existing="replace")  # as the message suggests


def test_a_fresh_start_removes_the_images_and_nothing_else(tmp_path: Path) -> None:
    run(config("er"), tmp_path)
    mine = tmp_path / "memory" / "notes.txt"
    mine.touch()
    run(config("er", "ram"), tmp_path, existing="replace")
    assert [file.name for file in mine.parent.iterdir()] == ["notes.txt"]


def test_a_memory_on_disk_takes_no_device(tmp_path: Path) -> None:
    both = make_config(SMALL, {"memory": {"storage": "disk", "device": "cpu"}})
    with pytest.raises(UserError, match="leave out --memory-device"):
        run(both, tmp_path / "x")
    assert not (tmp_path / "x").exists()
