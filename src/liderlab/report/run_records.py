"""Runs as they lie on the disk, finished or not. Read from outside: no torch needed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from ..config.diff import flat
from ..config.migrations import migrate
from ..errors import UserError
from ..functional.statistics import ConfidenceInterval, paired_difference
from ..runs.folder import RunFolder

State = Literal["finished", "running", "stopped"]
Matrix = list[list[float | None]]
SETTINGS = ("class_incremental", "task_incremental")
PROPER_NAMES = {"lider": "LiDER", "oewc": "oEWC", "olap": "oLAP", "ssgd": "sSGD"}


@dataclass(frozen=True)
class Record:
    """One run. config: complete, nested. result: None until it has finished."""

    path: Path
    name: str
    state: State
    config: dict[str, Any]
    result: dict[str, Any] | None

    @classmethod
    def read(cls, path: Path, name: str | None = None) -> Record:
        """Raises a `UserError` if the folder holds no run, or a damaged one."""
        folder = RunFolder.open(path)
        result = folder.result() if folder.finished else None
        config = folder.config().model_dump(mode="json") if result is None else result["config"]
        try:
            config = migrate(config)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        state: State = "finished" if result else "running" if folder.locked else "stopped"
        record = cls(path, name or str(path), state, config, result)
        try:
            record._touch()
        except (KeyError, TypeError, AttributeError, ValueError, IndexError):
            raise UserError(f"{path} is damaged: run it again") from None
        return record

    def _touch(self) -> None:
        """Look at everything that is taken for granted later."""
        _ = self.label, self.seed, self.tasks, self.buffer, self.scale, flat(self.config)
        for setting in SETTINGS if self.result else ():
            _ = self.metric(setting, "faa"), [list(row) for row in self.matrix(setting)]

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """What metrics.jsonl holds so far."""
        has_any = (self.path / "metrics.jsonl").is_file()
        return RunFolder(self.path).metrics() if has_any else []

    @property
    def method(self) -> str:
        return str(self.config["method"]["name"])

    @property
    def regularizers(self) -> list[str]:
        return list(self.config["regularizers"])

    @property
    def label(self) -> str:
        """The method and what was added to it: er-ace + LiDER."""
        return " + ".join([self.method, *(PROPER_NAMES.get(r, r) for r in self.regularizers)])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def benchmark(self) -> str:
        return str(self.config["benchmark"]["name"])

    @property
    def tasks(self) -> int:
        return int(self.config["benchmark"]["tasks"])

    @property
    def buffer(self) -> int | None:
        """Samples in memory; None if a finished run found none to measure its accuracy on."""
        measured = self.result and "memory_accuracy" in self.result["class_incremental"]
        without = measured and self.on_memory() is None
        return None if without else int(self.config["memory"]["size"])

    @property
    def scale(self) -> str:
        """What made it smaller; full: nothing did."""
        scale = self.config.get("scale")
        return str(scale["name"]) if scale else "full"

    def metric(self, setting: str, name: str) -> float | None:
        """A finished run's metric; None where it is not defined."""
        value = self.result[setting].get(name) if self.result else None
        return None if value is None else float(value)

    def matrix(self, setting: str) -> Matrix:
        """Accuracy on every task after every task, as far as it has come."""
        if self.result:
            rows: Matrix = self.result[setting]["accuracy_matrix"]
            return rows
        return self._rows(setting)

    def on_memory(self) -> Matrix | None:
        """Accuracy on the memory, likewise; None if there is no memory or it was not measured."""
        if self.result:
            rows: Matrix = self.result["class_incremental"].get("memory_accuracy") or []
        else:
            rows = self._rows("memory_accuracy")
        return rows if any(value is not None for row in rows for value in row) else None

    def _rows(self, field: str) -> Matrix:
        rows: Matrix = [[None] * self.tasks for _ in range(self.tasks)]
        for line in self.lines:
            if line["kind"] == "task" and field in line:
                rows[line["task"]] = line[field]
        return rows


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Run folders, given as such or by a folder that holds some at any depth; each one once."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path} is not a folder")
        inside = [path] if RunFolder(path).begun else _below(path)
        if not inside:
            raise UserError(f"{path} holds no run: none of its folders has a config.yaml")
        found |= dict.fromkeys(inside)
    return list(found)


def _below(path: Path) -> list[Path]:
    runs: list[Path] = []
    for folder, below, files in os.walk(path):
        if "config.yaml" in files:
            runs.append(Path(folder))
            below.clear()  # a run holds no runs
    return sorted(runs, key=lambda run: natural(str(run)))


def natural(text: str) -> list[tuple[int, str]]:
    """A key that puts seed10 behind seed9.

    >>> sorted(["seed10", "seed9"], key=natural)
    ['seed9', 'seed10']
    """
    parts = re.findall(r"\d+|\D+", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def names(paths: Sequence[Path]) -> list[str]:
    """As short as they can be told apart by: relative to where all of them are.

    >>> names([Path("runs/a/x"), Path("runs/b/x")]), names([Path("runs/a")])
    (['a/x', 'b/x'], ['a'])
    """
    full = [path.absolute() for path in paths]
    top = Path(os.path.commonpath([path.parent for path in full])) if full else Path()
    return [str(path.relative_to(top)) for path in full]


def read_all(paths: Iterable[Path]) -> tuple[list[Record], list[str]]:
    """The runs there, and a complaint about each that cannot be read."""
    runs, complaints = find_runs(paths), []
    records = []
    for path, name in zip(runs, names(runs), strict=True):
        try:
            records.append(Record.read(path, name))
        except UserError as error:
            complaints.append(str(error))
    if not records:
        raise UserError(complaints[0])
    return records, complaints


def by_seed(runs: Iterable[Record], setting: str, metric: str) -> dict[int, float]:
    """A metric by seed, where it is defined; the mean, if a seed was run more than once."""
    found: dict[int, list[float]] = {}
    for run in runs:
        if (value := run.metric(setting, metric)) is not None:
            found.setdefault(run.seed, []).append(value)
    return {seed: fmean(values) for seed, values in found.items()}


def seed_difference(
    ours: Mapping[int, float], theirs: Mapping[int, float]
) -> ConfidenceInterval | None:
    """ours − theirs, paired by seed; without a common seed the difference of the means, n = 0."""
    if paired := paired_difference(ours, theirs):
        return paired
    if not ours or not theirs:
        return None
    return ConfidenceInterval(fmean(ours.values()) - fmean(theirs.values()), None, None, 0)


BOOKKEEPING = (
    "schema",
    "seed",
    "preset",
    "device",
    "strategy",
    "threads",
    "deterministic",
    "log_every",
    "checkpoint_every",
    "keep_tasks",
    "on_nonfinite",
    "tracker",
    "scale.changes",
)
"""Fields that say how a run was executed, or repeat others, not what was trained."""


def essence(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that make two runs the same experiment, whatever their seeds."""
    fields = {k: v for k, v in flat(config).items() if not k.startswith(BOOKKEEPING)}
    for name in config["regularizers"]:  # there, even if it has no options
        fields[f"regularizers.{name}"] = "on"
    return fields


def differing(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Fields whose values are not the same in all of these flat configurations, in their order.

    >>> differing([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1}])
    ['b']
    """
    fields = dict.fromkeys(field for config in configs for field in config)
    absent = object()
    return [
        field
        for field in fields
        if any(config.get(field, absent) != configs[0].get(field, absent) for config in configs)
    ]
