"""`lider compare`: two runs, or two folders of seeds, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from . import completion
from .commands import command
from .option_types import Json, argument
from .output import new_console, print_json, report_damaged

Side = Annotated[
    Path,
    argument("A run folder, or one that holds its seeds.", values=completion.run_folders),
]


@command("lider compare runs/er-ace runs/er-ace-lider", "lider compare runs/a runs/b --json")
def compare(a: Side, b: Side, as_json: Json = False) -> None:
    """Compare two runs, or two folders of them seed by seed.

    Prints the settings that differ, all metrics, and their differences. Reads config.yaml and
    result.json of both sides; writes nothing.
    """
    from ..report.terminal.run_comparison import Comparison, comparison_tables

    comparison = Comparison.of(a, b)
    report_damaged(comparison.left_out)
    if as_json:
        print_json(comparison.as_tree())
        return
    console = new_console()
    for part in comparison_tables(comparison):
        console.print(part)
