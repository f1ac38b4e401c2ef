"""The progress of runs, read from their folders while they train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ...errors import UserError
from ...runs.folder import RunFolder
from ..run_records import RunRecord, find_runs, short_names

Values = list[float | None]


@dataclass(frozen=True)
class Snapshot:
    """The state of a run at one moment. done: from 0 to 1. left: seconds, None if unknown."""

    record: RunRecord
    done: float
    step: int
    planned: int | None
    left: float | None

    @classmethod
    def of(cls, record: RunRecord) -> Snapshot:
        progress = RunFolder(record.path).progress() or {}
        logged = record.lines[-1]["step"] if record.lines else 0
        step = max(logged, int(progress.get("step", 0)))
        if record.state == "finished":
            return cls(record, 1.0, step, step, 0.0)
        planned = progress.get("planned")
        done = min(1.0, step / planned) if planned else 0.0
        left = progress.get("left") if record.state == "running" else None
        return cls(record, done, step, planned, left)

    def as_tree(self) -> dict[str, Any]:
        """The snapshot as plain values, for --json."""
        return {
            **self.record.facts(),
            "step": self.step,
            "planned": self.planned,
            "done": self.done,
            "seconds_left": self.left,
            "accuracy": self.accuracy,
        }

    @property
    def accuracy(self) -> Values:
        """In the run's setting, mean over the tasks measured, after each finished task."""
        rows = [line["class_incremental"] for line in self.record.lines_of("task")]
        known = [[value for value in row if value is not None] for row in rows]
        return [fmean(values) if values else None for values in known]

    @property
    def loss(self) -> Values:
        """The sum of the loss terms; None where one of them was not finite."""
        terms = [list(line["terms"].values()) for line in self.record.lines_of("step")]
        return [None if None in values else sum(values) for values in terms]

    def logged(self, field: str) -> Iterator[tuple[str, Values]]:
        """Name and values of every loss term or reading. field: terms or readings."""
        steps = self.record.lines_of("step")
        for name in dict.fromkeys(name for line in steps for name in line[field]):
            yield name, [line[field].get(name) for line in steps]


class RunWatcher:
    """Looks at the runs in a folder repeatedly, and reads only those that have changed.

    problems: a message about each run that could not be read at the last look.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[Path, tuple[Any, Snapshot]] = {}
        self.problems: list[str] = []
        find_runs([path])  # refuse a folder without runs at once

    def look(self) -> list[Snapshot]:
        runs = find_runs([self._path])
        snapshots, self.problems = [], []
        for path, name in zip(runs, short_names(runs), strict=True):
            version = _version(path)
            if path not in self._seen or self._seen[path][0] != version:
                try:
                    self._seen[path] = version, _read(path, name)
                except UserError as error:
                    self.problems.append(str(error))
                    continue
            snapshots.append(self._seen[path][1])
        return snapshots


def _read(path: Path, name: str) -> Snapshot:
    """Raises a `UserError` if anything that the views show is damaged."""
    with RunFolder(path).consistent():
        snapshot = Snapshot.of(RunRecord.read(path, name))
        _ = snapshot.as_tree(), snapshot.loss
        for field in ("terms", "readings"):
            _ = [float(v) for _, values in snapshot.logged(field) for v in values if v is not None]
    return snapshot


def _version(path: Path) -> Sequence[Any]:
    """Lock, times and sizes of the run's files: different whenever the run has changed."""
    version: list[Any] = [RunFolder(path).locked]
    for name in ("config.yaml", "metrics.jsonl", "progress.json", "result.json"):
        try:
            stat = (path / name).stat()
            version.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            version.append(None)
    return version
