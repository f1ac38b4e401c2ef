"""The progress of a run: a bar in a terminal or a notebook, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from ...runs.build import Run
from ...training.loop import Event, StepDone, TaskDone
from ..notebook_bar import NotebookBar


class _TerminalBar(Progress):
    """A progress bar with a line of loss terms below it."""

    terms = ""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
        )
        self._item = self.add_task("starting", total=total)

    def show(self, done: float, text: str | None = None, terms: str | None = None) -> None:
        """Show that `done` of the total is done, with new texts; None leaves a text unchanged."""
        self.terms = self.terms if terms is None else terms
        self.update(self._item, completed=done, description=text)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        yield Text(self.terms, style="dim", no_wrap=True, overflow="ellipsis")


class ProgressDisplay:
    """Shows one run after another: task, epoch, loss terms, time left.

    A context manager and a listener: `run(config, out, listener=display)`. runs: how many follow
    each other under one bar.
    """

    def __init__(self, console: Console, runs: int = 1) -> None:
        self._console = console
        self._label, self._done, self._steps, self._planned = "", 0, 0, 0
        self._last_shown = 0.0
        self._bar: _TerminalBar | NotebookBar | None = None
        if console.is_jupyter:
            self._bar = NotebookBar(runs)
        elif console.is_terminal:
            self._bar = _TerminalBar(console, runs)

    def __enter__(self) -> ProgressDisplay:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self, label: str) -> None:
        """Show the next run, under this label."""
        self._label, self._steps, self._planned = label, 0, 0
        if not self._bar and label:
            self._console.print(label, highlight=False)

    def finish(self) -> None:
        """Count the current run as done."""
        self._done += 1
        if self._bar:
            self._bar.show(self._done)

    def __call__(self, work: Run, event: Event) -> None:
        if isinstance(event, StepDone):
            self._steps = work.loop.steps
            self._planned = max(self._planned or work.loop.planned_steps(), self._steps)
            self._show_step(work, event)
        elif isinstance(event, TaskDone) and not self._bar:
            accuracy = event.evaluation.class_incremental[event.task.index].nanmean()
            if accuracy == accuracy:
                task = f"task {event.task.index + 1}/{len(work.stream.tasks)}"
                self._print(f"{task} done: accuracy so far {accuracy:.2f} %")

    def _show_step(self, work: Run, event: StepDone) -> None:
        last = event.batch == event.batches - 1
        where = f"task {event.task.index + 1}/{len(work.stream.tasks)}"
        where += f" epoch {event.epoch + 1}/{event.fit.epochs}"
        if self._bar:
            # reading the terms waits for the device: ten times a second is enough
            if last or time.monotonic() - self._last_shown > 0.1:
                self._last_shown = time.monotonic()
                done = self._done + self._steps / self._planned
                self._bar.show(done, f"{self._label} {where}".strip(), _terms(event))
        elif last and event.epoch == event.fit.epochs - 1:
            self._print(f"{where} {_terms(event)}")

    def _print(self, text: str) -> None:
        self._console.print(f"  {text}", highlight=False, soft_wrap=True)


def _terms(event: StepDone) -> str:
    return " ".join(f"{name} {float(value):.3f}" for name, value in event.terms.items())
