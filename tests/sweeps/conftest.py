"""Fixtures: tiny planned runs, commands in processes, an engine without processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from liderlab.config.merging import make_config
from liderlab.runs.planned_run import PlannedRun
from liderlab.sweeps.engine import Ended
from liderlab.sweeps.worker import Job, execute

TINY = {"benchmark": "synthetic", "backbone": {"width": 8}, "training": {"epochs": 1}}
PATIENCE = 240  # seconds: the machine may be busy


class InlineEngine:
    """Executes runs in this process, as soon as they are started."""

    def __init__(self) -> None:
        self._ended: list[Ended] = []

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        self._ended += [Ended(plan, execute(Job.of(plan))) for plan in waiting]
        return list(waiting)

    def ended(self, seconds: float) -> list[Ended]:
        gone, self._ended = self._ended, []
        return gone

    def cancel(self, plan: PlannedRun) -> None:
        """The run has ended already."""

    def close(self) -> None:
        """No run is left."""


@pytest.fixture
def inline_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands execute their runs in this process."""
    monkeypatch.setattr("liderlab.sweeps.engine.make_engine", lambda *arguments: InlineEngine())


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., PlannedRun]:
    """Makes a tiny planned run: plan("a", seed=1)."""

    def make(name: str, **fields: Any) -> PlannedRun:
        config = make_config(TINY, {"method": "er", "threads": 1}, fields)
        return PlannedRun(name, config, tmp_path / "runs" / name)

    return make


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Starts `lider …` in tmp_path; kills processes that are left at the end."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "liderlab", *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "80", **environment},
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes a YAML file, returns its name."""

    def make(name: str, tree: Any) -> str:
        (tmp_path / name).write_text(yaml.safe_dump(tree))
        return name

    return make


def wait_until(condition: Callable[[], Any], event: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited too long for {event}"
        time.sleep(0.02)
    return value


@pytest.fixture(name="wait_until")
def wait_until_fixture() -> Callable[[Callable[[], Any], str], Any]:
    return wait_until
