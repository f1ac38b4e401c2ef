"""The command that looks on: watch."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from .shared import new_console

app = typer.Typer()


@app.command(epilog="Example: lider watch runs")
def watch(
    path: Annotated[
        Path,
        typer.Argument(help="A run's folder, or one that holds some.", show_default=False),
    ],
    once: Annotated[
        bool,
        typer.Option("--once", help="Print how things stand, and end; without a terminal, always."),
    ] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
) -> None:
    """Follow runs: how far, how good, how long still. Ends when all have finished, or by Ctrl-C."""
    from rich.live import Live

    from ..report.live import Watched, view

    console, watched = new_console(), Watched(path)
    if once or not console.is_terminal:
        console.print(view(watched.look(), console.width))
        return
    with Live(console=console, auto_refresh=False) as live, suppress(KeyboardInterrupt):
        while True:
            snapshots = watched.look()
            live.update(view(snapshots, console.width, console.height), refresh=True)
            if snapshots and all(s.record.state == "finished" for s in snapshots):
                return
            time.sleep(every)
