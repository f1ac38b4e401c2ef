"""`lider watch`: runs while they train."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from ..errors import check_numbers
from . import completion
from .commands import command
from .option_types import Json, argument, flag, option
from .output import new_console, print_json, report_damaged


@command("lider watch runs", "lider watch runs/x --once")
def watch(
    path: Annotated[
        Path, argument("A run folder, or one that holds some.", values=completion.run_folders)
    ],
    once: Annotated[
        bool, flag("--once", "Print the state once and end, as always without a terminal.")
    ] = False,
    every: Annotated[float, option("Seconds between two updates, 0.1 to 86400.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Follow runs: their progress, accuracy and time left.

    Ends when all have finished, or by Ctrl-C. Reads progress.json and metrics.jsonl of every run
    below PATH; writes nothing, and does not disturb the runs.
    """
    check_numbers(every=every, at_least=0.1, at_most=86_400)
    from rich.live import Live

    from ..report.terminal.live_view import view
    from ..report.terminal.run_snapshot import RunWatcher

    console, watched = new_console(repaints=not once), RunWatcher(path)
    if as_json:
        print_json([snapshot.as_tree() for snapshot in watched.look()])
    elif once or not console.is_terminal:
        console.print(view(watched.look(), console.width))
    else:
        with Live(console=console, auto_refresh=False) as live, suppress(KeyboardInterrupt):
            while True:
                snapshots = watched.look()
                live.update(view(snapshots, console.width, console.height), refresh=True)
                if snapshots and all(s.record.state == "finished" for s in snapshots):
                    break
                time.sleep(every)
    report_damaged(watched.problems)
