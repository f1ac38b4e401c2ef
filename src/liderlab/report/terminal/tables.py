"""Results as tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from rich.box import HORIZONTALS
from rich.console import Group
from rich.table import Table

Result = Mapping[str, Any]
SETTINGS = {"class_incremental": "class-incremental", "task_incremental": "task-incremental"}
METRICS = {"faa": "FAA", "ff": "FF", "bwt": "BWT", "fwt": "FWT", "aia": "AIA"}
COLUMNS = 10  # of the accuracy matrix beside each other


def mean_and_std(values: Sequence[float | None]) -> str:
    """Mean ± sample standard deviation over seeds; a dash where it is not defined.

    >>> mean_and_std([70.0, 72.0]), mean_and_std([70.0]), mean_and_std([None])
    ('71.00 ± 1.41', '70.00', '–')
    """
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "–"
    spread = f" ± {stdev(numbers):.2f}" if len(numbers) > 1 else ""
    return f"{fmean(numbers):.2f}{spread}"


def comparison(results: Mapping[str, Sequence[Result]]) -> Table:
    """One row per label, class-incremental FAA and FF over its runs."""
    table = Table()
    table.add_column("")
    table.add_column("FAA ↑ (%)", justify="right")
    table.add_column("FF ↓ (%)", justify="right")
    table.add_column("seeds", justify="right")
    for label, runs in results.items():
        cells = [
            mean_and_std([run["class_incremental"][metric] for run in runs])
            for metric in ("faa", "ff")
        ]
        table.add_row(label, *cells, str(len(runs)))
    return table


def metrics(result: Result) -> Table:
    """Every metric of one run, in both settings."""
    table = Table(title="percent", title_justify="left")
    table.add_column("")
    for name in METRICS.values():
        table.add_column(name, justify="right")
    for setting, label in SETTINGS.items():
        table.add_row(label, *(mean_and_std([result[setting][metric]]) for metric in METRICS))
    return table


def duration(result: Result) -> str:
    """How long a run took, and how much of that it evaluated.

    >>> duration({"seconds": 20.0, "seconds_evaluating": [1.0, 4.0]})
    '20.0 s (evaluating: 5.0 s, 25 %)'
    """
    total, evaluating = result["seconds"], sum(result.get("seconds_evaluating", []))
    known = evaluating and total > 0  # rounded, and whoever edits a file may write anything
    share = f" (evaluating: {evaluating:.1f} s, {evaluating / total:.0%})" if known else ""
    return f"{total:.1f} s{share.replace('%', ' %')}"


def remarks(result: Result) -> list[str]:
    """What a reader of the table must know: what a dash means, and what was left out.

    >>> remarks({"config": {}, "skipped_steps": 2})
    ['2 steps were skipped: their loss or gradient was not finite']
    """
    said = []
    if result["config"].get("evaluate") == "last":
        said.append("evaluated after the last task only: FF, BWT, FWT and AIA were not measured")
    if skipped := result.get("skipped_steps"):
        steps = "1 step was" if skipped == 1 else f"{skipped} steps were"
        said.append(f"{steps} skipped: their loss or gradient was not finite")
    return said


def accuracy_matrix(result: Result) -> Group:
    """Class-incremental accuracy on every task (columns) after every task (rows); as many columns
    beside each other as there is room for in 80 characters."""
    matrix = result["class_incremental"]["accuracy_matrix"]
    tasks = range(len(matrix))
    return Group(
        "accuracy on each task after each task (class-incremental, %)",
        *(_accuracies(matrix, tasks[i : i + COLUMNS]) for i in tasks[::COLUMNS]),
    )


def _accuracies(matrix: Sequence[Sequence[float | None]], columns: range) -> Table:
    """Nothing is known of a task before it came, so the rows begin with the first column's."""
    table = Table(box=HORIZONTALS, padding=(0, 1, 0, 0))
    table.add_column("after", justify="right")
    for task in columns:
        table.add_column(f"on {task + 1}", justify="right")
    for task in range(columns.start, len(matrix)):
        row = [matrix[task][column] for column in columns]
        table.add_row(f"{task + 1}", *("" if v is None else f"{v:.1f}" for v in row))
    return table


def origin(result: Result) -> list[str]:
    """What a run was made from, in lines; none where an older version wrote nothing about it.

    >>> origin({"data": {"train": [9, 8], "test": [4, 4], "fingerprint": "0f"}})
    ['data: 17 + 8 images, 8…9 + 4 in each of 2 tasks, fingerprint 0f']
    """
    lines = []
    if data := result.get("data"):
        total = " + ".join(f"{sum(data[part]):,}" for part in ("train", "test"))
        each = " + ".join(_span(data[part]) for part in ("train", "test"))
        tasks = f"{each} in each of {len(data['train'])} tasks"
        lines.append(f"data: {total} images, {tasks}, fingerprint {data['fingerprint']}")
    if weights := result.get("pretrained"):
        lines.append(f"pre-trained weights: {weights['name']}, SHA-256 {weights['sha256']}")
    return lines


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}…{high:,}"
