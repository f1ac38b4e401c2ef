"""Every operation on the disk fails once: afterwards the run resumes to the same bits.

All faults: pytest -m slow tests/runs/test_disk_faults.py
"""

import math
from collections import Counter
from pathlib import Path

import pytest

from faulty_disk import FAULTS, Crash, FaultyDisk, faulty
from liderlab.config.merging import make_config
from liderlab.errors import RunFailed, UserError
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare

CONFIG = make_config(
    {
        "benchmark": {"name": "synthetic", "tasks": 2},
        "backbone": {"width": 2},
        "method": "der++",
        "regularizers": {"lider": {}},
        "memory": {"size": 8, "storage": "disk"},
        "training": {"epochs": 1, "batch_size": 32},
        "log_every": 1,
        "checkpoint_every": 3,
        "keep_tasks": True,
        "threads": 1,
    }
)


@pytest.fixture(autouse=True)
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """progress.json is written once a second: without it, every run has the same operations."""
    monkeypatch.setattr("liderlab.runs.recorder.PROGRESS_EVERY", math.inf)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("whole") / "x"
    run(CONFIG, path)
    return RunFolder(path)


def operations(folder: Path) -> list[tuple[str, str]]:
    """The operations of an undisturbed run."""
    disk = FaultyDisk(folder)
    with faulty(disk):
        run(CONFIG, folder)
    return disk.log


def survives(whole: RunFolder, path: Path, number: int, fault: str) -> str:
    """Run with one fault, then resume; return how the first run ended."""
    disk = FaultyDisk(path, number, fault)
    try:
        with faulty(disk):
            run(CONFIG, path)
        ending = "finished"
    except Crash:
        ending = "crashed"
    except (RunFailed, UserError) as error:
        assert "\n" not in str(error)
        ending = "one sentence"
    where = f"{fault} at operation {number}, {disk.log[number]}"
    run(CONFIG, path, existing="resume")
    assert compare(whole, RunFolder(path)) == [], where
    left = [file.name for file in path.rglob(".*") if file.name != ".lock"]
    assert left == [], where
    return ending


def test_the_layer_changes_nothing(whole: RunFolder, tmp_path: Path) -> None:
    log = operations(tmp_path / "x")
    assert compare(whole, RunFolder(tmp_path / "x")) == []
    kinds = Counter(name for name, _ in log)
    assert min(kinds[name] for name in ("open", "write", "fsync", "rename", "unlink", "mkdir")) > 0
    files = {name for _, name in log}
    assert {"config.yaml", "metrics.jsonl", "result.json", "x.rows"} <= files


# A crash, which the test simulates in this process, closes no file.
unclosed = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@unclosed
@pytest.mark.parametrize("fault", FAULTS)
def test_some_faults(whole: RunFolder, tmp_path: Path, fault: str) -> None:
    count = len(operations(tmp_path / "first"))
    start = FAULTS.index(fault) * 3
    for number in range(start, count, 40):
        survives(whole, tmp_path / str(number), number, fault)


@unclosed
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_every_operation_fails_once(whole: RunFolder, tmp_path: Path, fault: str) -> None:
    count = len(operations(tmp_path / "first"))
    endings = Counter(
        survives(whole, tmp_path / str(number), number, fault) for number in range(count)
    )
    print(f"{fault}: {count} operations failed once each; {dict(endings)}")
