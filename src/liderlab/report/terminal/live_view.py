"""Runs under way, as a terminal shows them: read from their folders, wherever they run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...errors import UserError
from ...runs.folder import RunFolder
from ..run_records import Record, find_runs, names
from .run_list import STATE_STYLES, facts, number

LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int, top: float | None = None) -> str:
    """A curve in one line of text, from 0 (or its least value, if that is below) to `top`.

    >>> sparkline([0.0, 50.0, 100.0], 3), sparkline([1.0, None, float("inf")], 8)
    ('▁▅█', '█··')
    """
    if not values:
        return ""
    size = max(1, -(-len(values) // width))
    parts = [values[i : i + size] for i in range(0, len(values), size)]
    found = [[v for v in part if v is not None and math.isfinite(v)] for part in parts]
    means = [sum(part) / len(part) if part else None for part in found]
    known = [value for value in means if value is not None]
    low = min([0.0, *known])
    high = max(known, default=0.0) if top is None else top
    return "".join("·" if value is None else _level(value, low, high) for value in means)


def _level(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else 0.0
    return LEVELS[min(len(LEVELS) - 1, max(0, round(share * (len(LEVELS) - 1))))]


@dataclass(frozen=True)
class Snapshot:
    """How far a run is. done: from 0 to 1. left: seconds, None if nobody can tell."""

    record: Record
    done: float
    step: int
    planned: int | None
    left: float | None

    @classmethod
    def of(cls, record: Record) -> Snapshot:
        told = RunFolder(record.path).progress() or {}
        last = record.lines[-1]["step"] if record.lines else 0
        step = max(last, int(told.get("step", 0)))
        if record.state == "finished":
            return cls(record, 1.0, step, step, 0.0)
        planned = told.get("planned")
        done = min(1.0, step / planned) if planned else 0.0
        speed = told["step"] / told["seconds"] if told.get("seconds") else 0.0
        left = None
        if planned and speed > 0 and record.state == "running":
            left = (planned - step) / speed
        return cls(record, done, step, planned, left)

    def as_tree(self) -> dict[str, Any]:
        """As plain values."""
        return {
            **facts(self.record),
            "step": self.step,
            "planned": self.planned,
            "done": self.done,
            "seconds_left": self.left,
            "accuracy": self.accuracy,
        }

    @property
    def accuracy(self) -> list[float | None]:
        """Class-incremental, mean over the tasks so far, after each task that is done."""
        lines = [line for line in self.record.lines if line["kind"] == "task"]
        means: list[float | None] = []
        for line in lines:
            seen = [v for v in line["class_incremental"] if v is not None]
            means.append(sum(seen) / len(seen) if seen else None)
        return means

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        return [line for line in self.record.lines if line["kind"] == "step"]

    @property
    def loss(self) -> list[float | None]:
        """Their sum; None where one of them was not finite."""
        terms = [list(line["terms"].values()) for line in self.steps]
        return [None if None in values else sum(values) for values in terms]


class Watched:
    """Runs in a folder, looked at again and again: only what has changed is read.

    complaints: about each run that could not be read when they were last looked at."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[Path, tuple[Any, Snapshot]] = {}
        self.complaints: list[str] = []
        find_runs([path])  # complain at once if there is nothing

    def look(self) -> list[Snapshot]:
        runs = find_runs([self._path])
        snapshots, self.complaints = [], []
        for path, name in zip(runs, names(runs), strict=True):
            mark = _mark(path)
            if path not in self._seen or self._seen[path][0] != mark:
                try:
                    self._seen[path] = mark, _whole(Snapshot.of(Record.read(path, name)))
                except UserError as error:
                    self.complaints.append(str(error))
                    continue
                except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError):
                    self.complaints.append(f"{path} is damaged: run it again")
                    continue
            snapshots.append(self._seen[path][1])
        return snapshots


def _whole(snapshot: Snapshot) -> Snapshot:
    """Look at everything that will be shown."""
    _ = snapshot.as_tree(), snapshot.loss, list(_curves(snapshot, 8))
    return snapshot


def _mark(path: Path) -> tuple[Any, ...]:
    """Changes whenever the run does."""
    marks: list[Any] = [RunFolder(path).locked]
    for name in ("config.yaml", "metrics.jsonl", "progress.json", "result.json"):
        try:
            stat = (path / name).stat()
            marks.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            marks.append(None)
    return tuple(marks)


def view(snapshots: Sequence[Snapshot], width: int, height: int | None = None) -> RenderableType:
    """One run in full; several as a table, those under way first if they do not all fit."""
    if not snapshots:
        return Text("no run that can be read")
    if len(snapshots) == 1:
        return one_run(snapshots[0], width)
    ordered = sorted(snapshots, key=lambda s: STATES.index(s.record.state))
    rows = len(ordered) if height is None else max(1, height - 4)
    shown = snapshots if len(snapshots) <= rows else ordered[:rows]
    count = {state: sum(s.record.state == state for s in snapshots) for state in STATES}
    text = ", ".join(f"{n} {state}" for state, n in count.items() if n)
    hidden = len(snapshots) - len(shown)
    text += f"; {hidden} not shown" if hidden else ""
    return Group(many_runs(shown, width), Text(text, style="dim"))


STATES = ("running", "stopped", "finished")


def many_runs(snapshots: Sequence[Snapshot], width: int) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True)
    table.add_column("run", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("state", no_wrap=True, min_width=8)
    table.add_column("done", no_wrap=True, min_width=4, justify="right")
    table.add_column("left", no_wrap=True, min_width=5, justify="right")
    table.add_column("accuracy", no_wrap=True, min_width=15)
    table.add_column("loss", no_wrap=True, min_width=10)
    for snapshot in snapshots:
        record, accuracy = snapshot.record, snapshot.accuracy
        now = next((value for value in reversed(accuracy) if value is not None), None)
        table.add_row(
            Text(record.name),
            Text(record.state, style=STATE_STYLES[record.state]),
            f"{100 * snapshot.done:.0f}%",
            clock(snapshot.left) if record.state == "running" else "",
            Text.assemble((f"{sparkline(accuracy, 8, 100):<8} ", "cyan"), f"{number(now):>6}"),
            Text(sparkline(snapshot.loss, 10), style="magenta"),
        )
    return table


def one_run(snapshot: Snapshot, width: int) -> Panel:
    record, inner = snapshot.record, max(20, width - 4)
    place = f"step {snapshot.step}" + (f" of {snapshot.planned}" if snapshot.planned else "")
    left = f", {clock(snapshot.left)} left" if record.state == "running" else ""
    buffer = "" if record.buffer is None else f", buffer {record.buffer}"
    what = _both_ends(
        Text(f"{record.label} on {record.benchmark}{buffer}, seed {record.seed}"),
        Text(record.state, style=STATE_STYLES[record.state]),
    )
    bar = ProgressBar(total=1.0, completed=snapshot.done)
    how_far = _both_ends(bar, f"{100 * snapshot.done:3.0f}%  {place}{left}")
    curves = Table.grid(padding=(0, 2, 0, 0))
    curves.add_column(no_wrap=True, overflow="ellipsis", max_width=inner // 3)
    curves.add_column(no_wrap=True)
    curves.add_column(no_wrap=True, justify="right")
    for name, line, value in _curves(snapshot, max(8, inner - inner // 3 - 16)):
        curves.add_row(name, line, value)
    name = Text(record.name, style="bold")
    parts = Group(what, how_far, Text(), curves)
    return Panel(parts, title=name, title_align="left", width=width)


def _both_ends(left: RenderableType, right: RenderableType) -> Table:
    """A line of its own: the width of one does not depend on the next."""
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(left, right)
    return line


def _curves(snapshot: Snapshot, width: int) -> Iterator[tuple[Text, Text, str]]:
    """Accuracy, every loss term and every reading: name, curve, latest value."""
    accuracy = snapshot.accuracy
    if accuracy:
        now = next((value for value in reversed(accuracy) if value is not None), None)
        curve = Text(sparkline(accuracy, width, 100), style="cyan")
        yield Text("accuracy so far (%)"), curve, number(now)
    for field, style in (("terms", "magenta"), ("readings", "blue")):
        for name in dict.fromkeys(n for line in snapshot.steps for n in line[field]):
            values = [line[field].get(name) for line in snapshot.steps]
            latest = next((v for v in reversed(values) if v is not None), math.nan)
            yield Text(name), Text(sparkline(values, width), style=style), f"{latest:.4g}"


def clock(seconds: float | None) -> str:
    """
    >>> clock(65), clock(7300), clock(None)
    ('1:05', '2h01m', '?')
    """
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}:{whole % 60:02d}"
