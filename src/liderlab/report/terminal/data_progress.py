"""The progress bar of downloads, unpacking and decoding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from rich.console import Console

    from ...streams.storage.work_progress import Report


@contextmanager
def data_progress(console: Console) -> Iterator[Report | None]:
    """A progress bar in a terminal; elsewhere None, which stands for plain lines."""
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        items: dict[str, TaskID] = {}

        def report(action: str, done: int, total: int) -> None:
            if action not in items:
                items[action] = progress.add_task(action, total=total)
            progress.update(items[action], completed=done)

        yield report
