"""The progress of a run: a bar in a terminal or a notebook, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from ...runs.build import Run
from ...training.events import Event, StepDone, TaskDone
from ..formatting import duration
from ..notebook_bar import NotebookBar

LINE_EVERY = 60.0  # seconds, where there is no bar


class _TerminalBar(Progress):
    """A progress bar with lines of text below it."""

    below = ""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%{task.fields[left]}", markup=False),
            console=console,
            transient=True,
        )
        self._item = self.add_task("starting", total=total, left="")

    def show(
        self, done: float, text: str | None = None, left: str = "", below: str | None = None
    ) -> None:
        """Show that `done` of the total is done, with new texts; None leaves a text unchanged."""
        self.below = self.below if below is None else below
        self.update(self._item, completed=done, description=text, left=left)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        yield Text(self.below, style="dim", no_wrap=True, overflow="ellipsis")


class ProgressDisplay:
    """Shows one run after another: task, epoch, time left, accuracy, speed, loss terms.

    A context manager and a listener: `run(config, out, listener=display)`. runs: how many follow
    each other under one bar. Without a bar, it prints a line per task and per minute.
    """

    def __init__(self, console: Console, runs: int = 1) -> None:
        self._console, self._runs = console, runs
        self._label, self._done = "", 0
        self._begun = self._shown = time.monotonic()
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
        self._label, self._begun = label, time.monotonic()
        if not self._bar and label:
            self._console.print(label, highlight=False)

    def finish(self) -> None:
        """Count the current run as done."""
        self._done += 1
        if self._bar:
            self._bar.show(self._done)

    def __call__(self, work: Run, event: Event) -> None:
        work.pace.update(work.loop)
        if isinstance(event, StepDone):
            self._show_step(work, event)
        elif isinstance(event, TaskDone) and not self._bar:
            accuracy = _accuracy_after(work, event.task.index)
            self._print(f"{_task(work, event)} done{': ' if accuracy else ''}{accuracy}")

    def _show_step(self, work: Run, event: StepDone) -> None:
        last, now = event.batch == event.batches - 1, time.monotonic()
        where = f"{_task(work, event)} epoch {event.epoch + 1}"
        where += "" if work.loop.budget else f"/{event.fit.epochs}"
        seconds = self._seconds_left(work, now)
        left = f"{duration(seconds)} left" if seconds else ""
        if self._bar:
            # reading the terms waits for the device: ten times a second is enough
            if last or now - self._shown > 0.1:
                self._shown = now
                below = [self._label, ", ".join(_news(work, event)), _terms(event)]
                lines, done = "\n".join(filter(None, below)), self._done + work.pace.done
                self._bar.show(done, where, f" {left}".rstrip(), lines)
        elif (last and event.epoch == event.fit.epochs - 1) or now - self._shown > LINE_EVERY:
            self._shown = now
            news = ", ".join(filter(None, [left, *_news(work, event), _terms(event)]))
            self._print(f"{where}: {news}" if news else where)

    def _seconds_left(self, work: Run, now: float) -> float | None:
        """Of this run and of those that follow it, which are taken to be as long."""
        left = work.pace.left
        if left is None:
            return None
        return left + (self._runs - self._done - 1) * (now - self._begun + left)

    def _print(self, text: str) -> None:
        self._console.print(f"  {text}", highlight=False, soft_wrap=True)


def _accuracy_after(work: Run, task: int) -> str:
    """The mean over the tasks seen; empty before the first one, or if it was not measured."""
    row = work.loop.evaluation.class_incremental[task].nanmean() if task >= 0 else None
    return "" if row is None or row != row else f"{work.stream.setting} accuracy so far {row:.2f} %"


def _task(work: Run, event: Event) -> str:
    return f"task {event.task.index + 1}/{len(work.stream.tasks)}"


def _news(work: Run, event: StepDone) -> list[str]:
    """Accuracy and speed, as far as they are known."""
    speed = work.pace.speed
    pace = "" if speed is None else f"{speed:.{0 if speed >= 10 else 1}f} steps/s"
    return [text for text in (_accuracy_after(work, event.task.index - 1), pace) if text]


def _terms(event: StepDone) -> str:
    return " ".join(f"{name} {float(value):.3f}" for name, value in event.terms.items())
