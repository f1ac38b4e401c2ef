"""`liderlab.compare`: two runs, or the same seeds of two experiments."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from ..report.terminal.run_comparison import Comparison
from .run_result import RunResult

Folder = str | Path | RunResult


def compare(a: Folder | Sequence[Folder], b: Folder | Sequence[Folder]) -> Comparison:
    """Compare two runs, or two groups of them seed by seed, as `lider compare` does.

    Each side is a result, a run folder, a folder that holds the seeds, or several of them:
    `compare(sweep["plain"], sweep["lider"])`. `difference("faa")` of the value is b − a with its
    95 % interval; `print` and notebooks show all metrics.
    """
    comparison = Comparison.of(_paths(a), _paths(b))
    for message in comparison.left_out:
        warnings.warn(f"left out: {message}", stacklevel=2)
    return comparison


def _paths(side: Folder | Sequence[Folder]) -> list[Path]:
    sides = [side] if isinstance(side, (str, Path, RunResult)) else side
    return [one.folder if isinstance(one, RunResult) else Path(one) for one in sides]
