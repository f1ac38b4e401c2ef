"""Records of runs, finished or not, read from their folders. Reading one needs no torch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import glob, has_magic
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from ..config.diff import flat
from ..config.migrations import migrate
from ..errors import UserError
from ..runs.folder import RunFolder
from ..streams import BENCHMARKS, CLASSES
from .glossary import METRICS

State = Literal["finished", "running", "stopped"]
Matrix = list[list[float | None]]
PROPER_NAMES = {
    "bfp": "BFP",
    "c-flat": "C-Flat",
    "casper": "CaSpeR",
    "lider": "LiDER",
    "mrfa": "MRFA",
    "oewc": "oEWC",
    "olap": "oLAP",
    "sam": "SAM",
    "ssgd": "sSGD",
    "star": "STAR",
}


@dataclass(frozen=True)
class RunRecord:
    """One run. config: complete and nested. result: None until the run has finished."""

    path: Path
    name: str
    state: State
    config: dict[str, Any]
    result: dict[str, Any] | None

    @classmethod
    def read(cls, path: Path, name: str | None = None) -> RunRecord:
        """Raises a `UserError` if the folder holds no run or its files are damaged."""
        folder = RunFolder.open(path)
        result = folder.result() if folder.finished else None
        config = folder.config().model_dump(mode="json") if result is None else result["config"]
        try:
            config = migrate(config)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        state: State = "finished" if result else "running" if folder.locked else "stopped"
        record = cls(path, name or str(path), state, config, result)
        with folder.consistent():
            _ = record.tasks, record.facts(), flat(config)
        return record

    def facts(self) -> dict[str, Any]:
        """The run in short, as plain values; metrics are those of `setting`."""
        return {
            "name": self.name,
            "path": str(self.path),
            "state": self.state,
            "benchmark": self.benchmark,
            "method": self.method,
            "regularizers": self.regularizers,
            "lider": "lider" in self.regularizers,
            "backbone": self.config["backbone"]["name"],
            "buffer": self.buffer,
            "seed": self.seed,
            "scale": self.scale,
            "setting": self.setting,
            "seconds": (self.result or {}).get("seconds"),
            **{metric: self.metric("class_incremental", metric) for metric in METRICS},
        }

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl written so far."""
        has_any = (self.path / "metrics.jsonl").is_file()
        return RunFolder(self.path).metrics() if has_any else []

    def lines_of(self, kind: str) -> list[dict[str, Any]]:
        """kind: step or task."""
        return [line for line in self.lines if line["kind"] == kind]

    @property
    def anytime(self) -> list[dict[str, Any]]:
        """The moments of evaluation during tasks, and at their ends: step, task, and accuracies on
        the tasks seen, by setting."""
        ends = ("anytime" in line for line in self.lines)
        return [
            line["anytime"] if end else line
            for line, end in zip(self.lines, ends, strict=True)
            if end or line["kind"] == "anytime"
        ]

    @property
    def method(self) -> str:
        return str(self.config["method"]["name"])

    @property
    def regularizers(self) -> list[str]:
        return list(self.config["regularizers"])

    @property
    def label(self) -> str:
        """The method and its regularisers: er-ace + LiDER."""
        return " + ".join([self.method, *proper_names(self.regularizers)])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def benchmark(self) -> str:
        return str(self.config["benchmark"]["name"])

    @property
    def tasks(self) -> int:
        tasks, later = (self.config["benchmark"].get(name) for name in ("tasks", "then"))
        if self.result:
            return len(self.result["class_incremental"]["accuracy_matrix"])
        if tasks is None or later:  # as many as there are domains, or as the benchmarks have
            rows = [line["class_incremental"] for line in self.lines_of("task")]
            return len(rows[0]) if rows else 1
        return len(tasks) if isinstance(tasks, list) else int(tasks)

    @property
    def stream(self) -> str:
        """The benchmark, and how it differs from the benchmark's own tasks."""
        return stream_name(self.config["benchmark"])

    @property
    def setting(self) -> str:
        """class-incremental or domain-incremental; known before the run has finished."""
        if self.result:
            return str(self.result.get("setting", CLASSES))
        entry = BENCHMARKS.get(self.benchmark)
        return str(entry.facts.get("setting", CLASSES)) if entry else CLASSES

    @property
    def buffer(self) -> int | None:
        """Size of the memory; None if a finished run has measured no accuracy on samples in it."""
        measured = self.result and "memory_accuracy" in self.result["class_incremental"]
        without = measured and self.on_memory() is None
        return None if without else int(self.config["memory"]["size"])

    @property
    def scale(self) -> str:
        """The scale that made the experiment smaller, or "full"."""
        scale = self.config.get("scale")
        return str(scale["name"]) if scale else "full"

    def metric(self, setting: str, name: str) -> float | None:
        """A finished run's metric; None where it is not defined."""
        value = self.result[setting].get(name) if self.result else None
        return None if value is None else float(value)

    def matrix(self, setting: str) -> Matrix:
        """Accuracy on every task after every task, None where not yet measured."""
        if self.result:
            rows: Matrix = self.result[setting]["accuracy_matrix"]
            return rows
        return self._logged_rows(setting)

    def on_memory(self) -> Matrix | None:
        """Accuracy on the memory, task by task; None if nothing was measured."""
        if self.result:
            rows: Matrix = self.result["class_incremental"].get("memory_accuracy") or []
        else:
            rows = self._logged_rows("memory_accuracy")
        return rows if any(value is not None for row in rows for value in row) else None

    def _logged_rows(self, field: str) -> Matrix:
        rows: Matrix = [[None] * self.tasks for _ in range(self.tasks)]
        for line in self.lines_of("task"):
            if field in line:
                rows[line["task"]] = line[field]
        return rows


def proper_names(regularizers: Iterable[str]) -> list[str]:
    """
    >>> proper_names(["lider", "spectral"])
    ['LiDER', 'spectral']
    """
    return [PROPER_NAMES.get(name, name) for name in regularizers]


def settings_among(settings: Iterable[str]) -> str:
    """The settings of several runs, each one once.

    >>> settings_among(["domain-incremental", "class-incremental", "domain-incremental"])
    'class-incremental and domain-incremental'
    """
    return " and ".join(sorted(set(settings)))


def stream_name(benchmark: Mapping[str, Any]) -> str:
    """
    >>> stream_name({"name": "split-digits", "tasks": [4, 3, 3], "base": None})
    'split-digits 4+3+3'
    """
    tasks = benchmark["tasks"]
    unequal = tasks if isinstance(tasks, list) else []
    sizes = "+".join(str(len(task) if isinstance(task, list) else task) for task in unequal)
    base = benchmark.get("base")
    parts = [benchmark["name"], sizes, "" if base is None else f"base {base}"]
    for field, usual in (("imbalance", 1.0), ("blurry", 0.0), ("noise", 0.0)):
        if (value := benchmark.get(field, usual)) != usual:
            parts.append(f"{field} {value}")
    if benchmark.get("task_free"):
        parts.append("task-free")
    return " ".join(part for part in parts if part)


def accuracy_so_far(matrix: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Mean accuracy on the tasks seen so far, after each task; None where one is missing.

    >>> accuracy_so_far([[90.0, None], [60.0, 80.0]])
    [90.0, 70.0]
    """
    rows = [row[: t + 1] for t, row in enumerate(matrix)]
    return [None if None in row else fmean(v for v in row if v is not None) for row in rows]


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Run folders: the paths themselves, or all below them at any depth; each one once."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path} is not a folder")
        inside = [path] if RunFolder(path).begun else _runs_below(path)
        if not inside:
            raise UserError(f"{path} holds no run: no folder in it has a config.yaml")
        found |= dict.fromkeys(inside)
    return list(found)


SEED = re.compile(r"(-seed|,seed=)\d+$")
"""The end of the names that runs of `lider run`, `demo` and `sweep` have for each seed."""


def seed_folders(path: Path) -> list[Path]:
    """The folders that a path means: itself, those that match it as a pattern, or its seeds.

    `demo/er-ace` means `demo/er-ace-seed0`, `demo/er-ace-seed1`, …, if there is no such folder.
    """
    if path.is_dir():
        return [path]
    if has_magic(str(path)):
        found = [Path(name) for name in glob(str(path)) if os.path.isdir(name)]
    else:
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        found = [f for f in beside if SEED.sub("", f.name) == path.name and f.is_dir()]
    return sorted(found, key=_natural_order) or [path]


def without_seed(path: Path) -> str:
    """
    >>> without_seed(Path("demo/er-ace-seed1")), without_seed(Path("runs/lr=0.1,seed=0"))
    ('demo/er-ace', 'runs/lr=0.1')
    """
    return SEED.sub("", str(path))


def _runs_below(path: Path) -> list[Path]:
    runs: list[Path] = []
    for folder, below, files in os.walk(path):
        if "config.yaml" in files:
            runs.append(Path(folder))
            below.clear()  # a run folder holds no other run
    return sorted(runs, key=_natural_order)


def _natural_order(path: Path) -> list[str | int]:
    """A sort key that puts seed10 after seed9: text and numbers alternate."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]


def short_names(paths: Sequence[Path]) -> list[str]:
    """Paths relative to the deepest folder that holds all of them.

    >>> short_names([Path("runs/a/x"), Path("runs/b/x")]), short_names([Path("runs/a")])
    (['a/x', 'b/x'], ['a'])
    """
    full = [path.absolute() for path in paths]
    top = Path(os.path.commonpath([path.parent for path in full])) if full else Path()
    return [str(path.relative_to(top)) for path in full]


def read_all(paths: Iterable[Path]) -> tuple[list[RunRecord], list[str]]:
    """All runs that can be read, and a message about each one that cannot."""
    runs = find_runs(paths)
    records, problems = [], []
    for path, name in zip(runs, short_names(runs), strict=True):
        try:
            records.append(RunRecord.read(path, name))
        except UserError as error:
            problems.append(str(error))
    if not records:
        raise UserError(problems[0])
    return records, problems
