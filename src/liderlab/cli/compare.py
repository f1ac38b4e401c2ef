"""`lider compare`: two runs, or the seeds of two experiments, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from . import completion
from .commands import command
from .option_types import Json, argument
from .output import new_console, print_json, report_damaged

Runs = Annotated[
    list[Path],
    argument(
        "Two run folders, or folders that hold the seeds, or their names without the seed.",
        values=completion.run_folders,
    ),
]


@command(
    "lider compare runs/er-ace runs/er-ace-lider",
    "lider compare demo/er-ace demo/er-ace-lider",
    "lider compare runs/sweep --json",
)
def compare(runs: Runs, as_json: Json = False) -> None:
    """Compare two runs, or two groups of them seed by seed.

    demo/er-ace means demo/er-ace-seed0, demo/er-ace-seed1, …; patterns like 'demo/er-ace-seed*'
    and a single folder with two experiments, as of a sweep, will do as well. Prints the settings
    that differ, all metrics, and their differences. Reads config.yaml and result.json of both
    sides; writes nothing.
    """
    from ..report.terminal.run_comparison import Comparison, comparison_tables

    comparison = Comparison.among(runs)
    report_damaged(comparison.left_out)
    if as_json:
        print_json(comparison.as_tree())
        return
    console = new_console()
    for part in comparison_tables(comparison):
        console.print(part)
