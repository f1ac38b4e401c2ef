"""How far a sweep is, and what it found."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...runs.folder import RunFolder
from ...runs.planned_run import PlannedRun
from .run_list import number

SHOWN = 12  # lines of the live table
STYLES = {"running": "cyan", "done": "green", "failed": "red", "stopped": "yellow"}


class SweepDisplay:
    """A live table in a terminal, a line per finished run elsewhere.

    A context manager, told the state of every run by its name: `display(states)`.
    """

    def __init__(self, console: Console, plans: Sequence[PlannedRun]) -> None:
        self._console, self._plans = console, {plan.name: plan for plan in plans}
        self._states: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._notes: dict[str, str] = {}
        self._started = time.monotonic()
        self._skipped = 0
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> SweepDisplay:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def __call__(self, states: Mapping[str, str]) -> None:
        first = not self._states
        for name, state in states.items():
            if state != self._states.get(name):
                self._states[name], self._since[name] = state, time.monotonic()
                self._notes[name] = self._note(name, state)
                if not self._console.is_terminal and state in ("done", "failed") and not first:
                    self._print(name, state)
        if first:
            self._skipped = sum(state in ("done", "failed") for state in states.values())
            if self._skipped and not self._console.is_terminal:
                self._console.print(f"{self._skipped} ended earlier, and are skipped")
        if self._console.is_terminal:
            self._live.update(self._table(), refresh=True)

    def _print(self, name: str, state: str) -> None:
        ended = sum(state in ("done", "failed") for state in self._states.values())
        text = f"{ended}/{len(self._states)} {state} {name}: {self._notes[name]}"
        self._console.print(text, highlight=False, soft_wrap=True)

    def _note(self, name: str, state: str) -> str:
        folder = self._plans[name].folder
        if state == "done":
            result = RunFolder(folder).result()
            return f"FAA {number(result['class_incremental']['faa'])} %, {result['seconds']:.1f} s"
        return _error(folder / "error.json") if state == "failed" else ""

    def _table(self) -> Group:
        """What runs, and then what ended last, as far as there is room."""
        names = sorted(self._states, key=self._rank)[:SHOWN]
        table = Table(box=None, padding=(0, 1), show_header=False, expand=True)
        table.add_column(no_wrap=True, width=8)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(no_wrap=True, justify="right", max_width=30, overflow="ellipsis")
        for name in names:
            state = self._states[name]
            note = self._progress(name) if state == "running" else self._notes[name]
            table.add_row(Text(state, style=STYLES.get(state, "dim")), name, note)
        return Group(Text(self._heading(), no_wrap=True, overflow="ellipsis"), table)

    def _rank(self, name: str) -> tuple[int, float]:
        order = {"running": 0, "failed": 1, "stopped": 2, "done": 2, "waiting": 3}
        sign = 1 if self._states[name] in ("running", "waiting") else -1
        return order[self._states[name]], sign * self._since[name]

    def _heading(self) -> str:
        count = dict.fromkeys(("done", "failed", "running", "waiting"), 0)
        for state in self._states.values():
            count[state] = count.get(state, 0) + 1
        text = ", ".join(f"{number} {state}" for state, number in count.items() if number)
        seconds = time.monotonic() - self._started
        ended = count["done"] + count["failed"] - self._skipped
        left = count["running"] + count["waiting"]
        if ended and left:
            text += f"; {_duration(seconds * left / ended)} left, roughly"
        return f"{len(self._states)} runs: {text}; {_duration(seconds)} so far"

    def _progress(self, name: str) -> str:
        """As far as the folder tells, wherever the run is."""
        plan, seconds = self._plans[name], time.monotonic() - self._since[name]
        done = _tasks_done(RunFolder(plan.folder))
        return f"task {done + 1}/{plan.config.benchmark.tasks or '?'}, {_duration(seconds)}"


def _error(file: Path) -> str:
    """What a failed run left behind; where to look if that cannot be read."""
    try:
        return str(json.loads(file.read_bytes())["error"])
    except (OSError, ValueError, TypeError, KeyError):
        return f"see {file}"


def _tasks_done(folder: RunFolder) -> int:
    """From the end of metrics.jsonl, which may be long, and in the middle of being written."""
    try:
        with (folder.path / "metrics.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 2**16))
            lines = file.read().split(b"\n")
    except OSError:
        return 0
    return next(
        (
            int(line.split(b'"task": ')[1].split(b",")[0]) + 1
            for line in reversed(lines)
            if line.startswith(b'{"kind": "task"') and b'"task": ' in line[16:]
        ),
        0,
    )


def _duration(seconds: float) -> str:
    """
    >>> _duration(7.4), _duration(125), _duration(7300)
    ('7 s', '2 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def sweep_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One line per group of seeds: FAA and FF, class-incremental, mean ± std."""
    table = Table()
    table.add_column("", overflow="fold")
    for column in ("FAA ↑ (%)", "FF ↓ (%)", "runs"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        count = str(row["done"]) if row["done"] == row["runs"] else f"{row['done']}/{row['runs']}"
        table.add_row(row["group"], _spread(row, "faa"), _spread(row, "ff"), count)
    return table


def _spread(row: Mapping[str, Any], name: str) -> str:
    mean, std = row[f"{name}_mean"], row[f"{name}_std"]
    if mean is None:
        return "–"
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
