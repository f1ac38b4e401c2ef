"""Trackers are the real packages, each on its own store, read back."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from liderlab.errors import UserError
from liderlab.registry import Entry
from liderlab.runs.folder import RunFolder
from liderlab.runs.trackers import TRACKERS, Trackers, check_installed

CONFIG = {"method": {"name": "er"}, "seed": 0}
STEPS = [
    {"kind": "step", "step": n, "task": 0, "terms": {"ce": 2.0 / n}, "readings": {"lider/λ/a": n}}
    for n in (1, 2, 3)
]
TASK = {
    "kind": "task",
    "step": 3,
    "task": 1,
    "class_incremental": [0.5, 1.0],
    "task_incremental": [1.0, 1.0],
}
EXPECTED = {"loss/ce": [2.0, 1.0, 2 / 3], "lider/lambda/a": [1.0, 2.0, 3.0]}
ONCE = {"class-incremental/mean": 0.75, "final/class-incremental/faa": 75.0}


def track(name: str, folder: Path) -> None:
    """A run that is interrupted after its second step, whose checkpoint knows of the first only."""
    with Trackers([name], folder, CONFIG, 0) as first:
        for line in STEPS[:2]:
            first.log(line)
    with Trackers([name], folder, CONFIG, 1) as second:
        for line in [*STEPS[1:], TASK]:
            second.log(line)
        second.finish(3, {"class_incremental": {"faa": 75.0, "fwt": None}, "task_incremental": {}})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    track("tensorboard", tmp_path)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    for name, values in EXPECTED.items():
        scalars = events.Scalars(name)
        assert [event.step for event in scalars] == [1, 2, 3]
        assert [event.value for event in scalars] == pytest.approx(values)
    for name, value in ONCE.items():
        assert [event.value for event in events.Scalars(name)] == pytest.approx([value])


def in_another_process(name: str, folder: Path, **environment: str) -> None:
    """Some trackers start threads and services: a process of their own keeps them out of here."""
    code = (
        "import sys, runpy; from pathlib import Path; "
        f"runpy.run_path({str(Path(__file__))!r})['track']({name!r}, Path({str(folder)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_wandb_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    in_another_process("wandb", tmp_path, WANDB_MODE="offline", WANDB_SILENT="true")
    history: dict[str, dict[int, Any]] = {}
    for file in sorted((tmp_path / "wandb").glob("offline-run-*/run-*.wandb")):
        for step, values in _wandb_history(file):
            for name, value in values.items():
                history.setdefault(name, {})[step] = value
    for name, values in EXPECTED.items():
        assert list(history[name].values()) == pytest.approx(values)
        assert list(history[name]) == [1, 2, 3]
    for name, value in ONCE.items():
        assert history[name] == {3: pytest.approx(value)}
    identities = {file.name for file in (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")}
    assert len(identities) == 1  # the resumed process went on in the same run


def _wandb_history(file: Path) -> list[tuple[int, dict[str, Any]]]:
    from wandb.proto import wandb_internal_pb2

    rows = []
    for data in _leveldb_records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.HasField("history"):
            items = {
                item.key or "/".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            rows.append((record.history.step.num, items))
    return rows


def _leveldb_records(log: bytes) -> list[bytes]:
    """W&B keeps its records in LevelDB's log format behind a header of 7 bytes: blocks of 32 KiB,
    fragments of (checksum: 4, length: 2, kind: 1, data); kinds full, first, middle, last."""
    records, parts, place = [], b"", 7
    while place + 7 <= len(log):
        room = 32768 - place % 32768
        if room < 7:
            place += room
            continue
        length, kind = struct.unpack("<HB", log[place + 4 : place + 7])
        parts += log[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            records.append(parts)
            parts = b""
    return records


def test_mlflow_on_sqlite(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    in_another_process("mlflow", tmp_path, MLFLOW_TRACKING_URI=uri)
    import sqlite3

    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        metrics = database.execute("select key, step, value, run_uuid from metrics").fetchall()
        params = dict(database.execute("select key, value from params").fetchall())
        runs = database.execute("select name, status from runs").fetchall()
    database.close()
    assert params == {"method.name": "er", "seed": "0"}
    assert runs == [(tmp_path.name, "FINISHED")]
    for name, values in EXPECTED.items():
        found = {step: value for key, step, value, _ in metrics if key == name}
        assert found == {n: pytest.approx(v) for n, v in zip((1, 2, 3), values, strict=True)}
    for name, value in ONCE.items():
        assert [v for key, _, v, _ in metrics if key == name] == [pytest.approx(value)]


def test_a_missing_tracker_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liderlab.runs.trackers.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'liderlab\[wandb\]'"):
        check_installed(["wandb"])
    with pytest.raises(UserError, match="unknown tracker 'wandbb': did you mean 'wandb'"):
        check_installed(["wandbb"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_run_is_tracked(lider, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    options = ["--benchmark", "synthetic", "--method", "er", "--lider", "--buffer", "20"]
    code, _, err = lider("run", *options, "--tracker", "tensorboard", "--out", "x")
    assert code == 0, err
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "x" / "tensorboard"))
    events.Reload()
    tags = events.Tags()["scalars"]
    assert {"loss/stream", "loss/lider/c_lip", "class-incremental/mean"} <= set(tags)
    result = json.loads((tmp_path / "x" / "result.json").read_text())
    (final,) = events.Scalars("final/class-incremental/faa")
    assert final.value == pytest.approx(result["class_incremental"]["faa"])
    code, _, err = lider("run", *options, "--tracker", "tensorbord", "--out", "y")
    assert code == 2
    assert err.startswith("lider: unknown tracker 'tensorbord': did you mean 'tensorboard'?")
    assert not (tmp_path / "y").exists()


def test_a_tracker_that_cannot_start_leaves_nothing(lider, tmp_path: Path, monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no login\nmore")

    monkeypatch.setitem(TRACKERS, "wandb", Entry(broken, "broken"))
    monkeypatch.setattr("liderlab.runs.trackers.find_spec", lambda name: True)
    code, _, err = lider("run", "--benchmark", "synthetic", "--tracker", "wandb", "--out", "x")
    assert (code, err.splitlines()[-1]) == (2, "lider: cannot start wandb: no login")
    assert not (tmp_path / "x").exists()


def test_a_tracker_that_cannot_start_leaves_an_earlier_run_alone(
    lider, tmp_path: Path, monkeypatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no login")

    options = ("--benchmark", "synthetic", "--epochs", "1", "--buffer", "10", "--out", "x")
    assert lider("run", *options)[0] == 0
    before = {file: file.read_bytes() for file in (tmp_path / "x").glob("*.*")}
    monkeypatch.setitem(TRACKERS, "wandb", Entry(broken, "broken"))
    monkeypatch.setattr("liderlab.runs.trackers.find_spec", lambda name: True)
    assert lider("run", *options, "--force", "--tracker", "wandb")[0] == 2
    assert {file: file.read_bytes() for file in (tmp_path / "x").glob("*.*")} == before
    (tmp_path / "x" / "result.json").unlink()
    assert lider("resume", "x", "--tracker", "wandb")[0] == 2
    assert (tmp_path / "x" / "config.yaml").read_bytes() == before[tmp_path / "x" / "config.yaml"]
    assert lider("resume", "x")[0] == 0


def test_a_resumed_run_can_do_without_its_tracker(lider, tmp_path: Path) -> None:
    options = ("--benchmark", "synthetic", "--epochs", "1", "--buffer", "10", "--out", "x")
    assert lider("run", *options, "--tracker", "tensorboard")[0] == 0
    (tmp_path / "x" / "result.json").unlink()
    assert lider("resume", "x", "--tracker", "none")[0] == 0
    assert RunFolder(tmp_path / "x").config().tracker == []


@pytest.mark.parametrize("moment", ["log", "close"])
def test_training_goes_on_without_a_tracker_that_fails(
    lider, tmp_path: Path, monkeypatch, caplog: pytest.LogCaptureFixture, moment: str
) -> None:
    logged: list[int] = []

    class Fragile:
        def __init__(self, folder: Path, config: object, step: int) -> None:
            logged.append(-1)

        def log(self, step: int, values: object) -> None:
            logged.append(step)
            if moment == "log" and len(logged) == 3:
                raise RuntimeError("no server\nmore")

        def close(self, finished: bool) -> None:
            if moment == "close":
                raise RuntimeError("no server")

    monkeypatch.setitem(TRACKERS, "wandb", Entry(Fragile, "fragile"))
    monkeypatch.setattr("liderlab.runs.trackers.find_spec", lambda name: True)
    options = ("--benchmark", "synthetic", "--epochs", "1", "--set", "log_every=1", "--out", "x")
    code, _, _ = lider("run", *options, "--tracker", "wandb")
    assert code == 0
    assert RunFolder(tmp_path / "x").intact
    warned = [text for text in caplog.messages if "wandb failed" in text]
    assert warned == ["wandb failed, and the run goes on without it: no server"]
    assert len(logged) == (3 if moment == "log" else 14)
    (tmp_path / "x" / "result.json").unlink()
    assert lider("resume", "x")[0] == 0
    assert logged.count(-1) == 2, "resuming starts it again"


@pytest.mark.parametrize(
    ("name", "variable"),
    [("mlflow", "MLFLOW_DISABLE_TELEMETRY"), ("wandb", "WANDB_ERROR_REPORTING")],
)
def test_trackers_send_nothing_to_their_makers(
    tmp_path: Path, monkeypatch, name: str, variable: str
) -> None:
    """The variable is set when the package is imported, which reads it; a user's value stays."""
    seen: list[str | None] = []

    class Finder:
        def find_spec(self, package: str, *_: object) -> None:
            if package.partition(".")[0] == name:
                seen.append(os.environ.get(variable))
                raise ImportError

    for given, wanted in ((None, {"wandb": "false", "mlflow": "true"}[name]), ("mine", "mine")):
        monkeypatch.delenv(variable, raising=False)
        if given:
            monkeypatch.setenv(variable, given)
        monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
        for module in [m for m in sys.modules if m.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        with pytest.raises(UserError, match=f"cannot start {name}"):
            Trackers([name], tmp_path, CONFIG, 0)
        assert seen.pop(0) == wanted
        monkeypatch.undo()
