"""The progress of a sweep."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...runs.folder import RunFolder
from ...runs.planned_run import PlannedRun
from ...runs.result_schema import setting_of
from ..formatting import duration, number
from ..notebook_bar import NotebookBar

SHOWN = 12  # lines of the live table
STYLES = {"running": "cyan", "done": "green", "failed": "red", "stopped": "yellow"}
ENDED = ("done", "failed")


class SweepDisplay:
    """A live table in a terminal, a bar in a notebook, a line per finished run elsewhere.

    A context manager, called with the state of every run by its name: `display(states)`.
    """

    def __init__(self, console: Console, plans: Sequence[PlannedRun]) -> None:
        self._console, self._plans = console, {plan.name: plan for plan in plans}
        self._states: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._notes: dict[str, str] = {}
        self._started = time.monotonic()
        self._skipped = 0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._bar = NotebookBar(len(plans)) if console.is_jupyter else None

    def __enter__(self) -> SweepDisplay:
        if self._console.is_terminal:
            self._live.start()
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def __call__(self, states: Mapping[str, str]) -> None:
        first, lines = not self._states, not (self._console.is_terminal or self._bar)
        for name, state in states.items():
            if state != self._states.get(name):
                self._states[name], self._since[name] = state, time.monotonic()
                self._notes[name] = self._note(name, state)
                if lines and state in ENDED and not first:
                    self._print(name, state)
        if first:
            self._skipped = self._count_ended()
            if self._skipped and lines:
                self._console.print(f"skipping {self._skipped} that ended earlier")
        if self._bar:
            self._bar.show(self._count_ended(), self._heading())
        elif not lines:
            self._live.update(self._table(), refresh=True)

    def _count_ended(self) -> int:
        return sum(state in ENDED for state in self._states.values())

    def _print(self, name: str, state: str) -> None:
        text = f"{self._count_ended()}/{len(self._states)} {state} {name}: {self._notes[name]}"
        self._console.print(text, highlight=False, soft_wrap=True)

    def _note(self, name: str, state: str) -> str:
        folder = self._plans[name].folder
        if state == "done":
            result = RunFolder(folder).result()
            accuracy = number(result["class_incremental"]["faa"])
            return f"{setting_of(result)} FAA {accuracy} %, {result['seconds']:.1f} s"
        return _error(folder / "error.json") if state == "failed" else ""

    def _table(self) -> Group:
        """Running runs first, then those that ended last, as many as there is room for."""
        names = sorted(self._states, key=self._order)[:SHOWN]
        table = Table(box=None, padding=(0, 1), show_header=False, expand=True)
        table.add_column(no_wrap=True, width=8)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(no_wrap=True, justify="right", max_width=40, overflow="ellipsis")
        for name in names:
            state = self._states[name]
            note = self._progress(name) if state == "running" else self._notes[name]
            table.add_row(Text(state, style=STYLES.get(state, "dim")), name, note)
        return Group(Text(self._heading(), no_wrap=True, overflow="ellipsis"), table)

    def _order(self, name: str) -> tuple[int, float]:
        order = {"running": 0, "failed": 1, "stopped": 2, "done": 2, "waiting": 3}
        sign = 1 if self._states[name] in ("running", "waiting") else -1
        return order[self._states[name]], sign * self._since[name]

    def _heading(self) -> str:
        count = dict.fromkeys(("done", "failed", "running", "waiting"), 0)
        for state in self._states.values():
            count[state] = count.get(state, 0) + 1
        text = ", ".join(f"{runs} {state}" for state, runs in count.items() if runs)
        seconds = time.monotonic() - self._started
        ended = self._count_ended() - self._skipped
        left = count["running"] + count["waiting"]
        if ended and left:
            text += f"; about {duration(seconds * left / ended)} left"
        return f"{len(self._states)} runs: {text}; {duration(seconds)} so far"

    def _progress(self, name: str) -> str:
        progress = RunFolder(self._plans[name].folder).progress() or {}
        step, planned, left = (progress.get(key) for key in ("step", "planned", "left"))
        if not step or not planned:
            return "starting"
        share = f"{100 * step / planned:.0f} %"
        return share if left is None else f"{share}, {duration(left)} left"


def _error(file: Path) -> str:
    """The message in a failed run's error.json; the file's name if it cannot be read."""
    try:
        return str(json.loads(file.read_bytes())["error"])
    except (OSError, ValueError, TypeError, KeyError):
        return f"see {file}"
