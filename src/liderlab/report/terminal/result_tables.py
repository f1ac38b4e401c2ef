"""One result, and several methods' results, as tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import HORIZONTALS
from rich.console import Group
from rich.table import Table

from ...runs.result_schema import setting_of, settings_of
from ..formatting import mean_std, mean_std_of, number
from ..glossary import ANYTIME, METRICS, Metric
from ..run_records import settings_among

Result = Mapping[str, Any]
COLUMNS = 10  # tasks beside each other in the accuracy matrix


def method_table(results: Mapping[str, Sequence[Result]]) -> Table:
    """One row per label: FAA and FF over its runs."""
    table = _faa_ff_table("seeds")
    for label, runs in results.items():
        found = [run["class_incremental"] for run in runs]
        means = (mean_std_of([run[metric] for run in found]) for metric in ("faa", "ff"))
        table.add_row(label, *means, str(len(runs)))
    return table


def sweep_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One row per group of seeds: FAA and FF."""
    table = _faa_ff_table("runs")
    table.caption = settings_among(row["setting"] for row in rows if row["setting"])
    for row in rows:
        count = str(row["done"]) if row["done"] == row["runs"] else f"{row['done']}/{row['runs']}"
        means = (mean_std(row[f"{name}_mean"], row[f"{name}_std"]) for name in ("faa", "ff"))
        table.add_row(row["group"], *means, count)
    return table


def _faa_ff_table(count: str) -> Table:
    table = Table(caption_justify="left")
    table.add_column("", overflow="fold")
    for column in ("FAA ↑ (%)", "FF ↓ (%)", count):
        table.add_column(column, justify="right", no_wrap=True)
    return table


def metric_table(result: Result) -> Group:
    """Every metric of one run, in each setting; those during training in a table of their own."""
    tables = [_metric_table(result, METRICS, "percent")]
    if "aaa" in result["class_incremental"]:
        tables.append(_metric_table(result, ANYTIME, "during training, percent"))
    return Group(*tables)


def _metric_table(result: Result, metrics: Mapping[str, Metric], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for metric in metrics.values():
        table.add_column(metric.label, justify="right")
    for setting, label in settings_of(result).items():
        table.add_row(label, *(number(result[setting][metric]) for metric in metrics))
    return table


def run_time(result: Result) -> str:
    """How long a run took, and the share of it that went into evaluation.

    >>> run_time({"seconds": 20.0, "seconds_evaluating": [1.0, 4.0]})
    '20.0 s (evaluation: 5.0 s, 25 %)'
    """
    total, evaluating = result["seconds"], sum(result.get("seconds_evaluating", []))
    if not evaluating or total <= 0:  # not written by an older version, or rounded to zero
        return f"{total:.1f} s"
    return f"{total:.1f} s (evaluation: {evaluating:.1f} s, {100 * evaluating / total:.0f} %)"


def remarks(result: Result) -> list[str]:
    """Sentences that explain missing metrics, unequal tasks and skipped steps.

    >>> remarks({"config": {}, "skipped_steps": 2})
    ['2 steps were skipped for a non-finite loss or gradient']
    """
    found = []
    if result["config"].get("evaluate") == "last":
        found.append("evaluated after the last task only: FF, BWT, FWT and AIA were not measured")
    if result["config"].get("evaluate") == "seen":
        found.append("evaluated on the tasks seen so far only: FWT was not measured")
    benchmark = result["config"].get("benchmark", {})
    if isinstance(benchmark.get("tasks"), list) or benchmark.get("base"):
        accuracy = result["class_incremental"]
        weighed = (f"{m.upper()} {number(accuracy.get(f'{m}_per_sample'))}" for m in ("faa", "aia"))
        found.append(
            f"{setting_of(result)} with equal weights of test images: {', '.join(weighed)}"
        )
    if skipped := result.get("skipped_steps"):
        steps = "1 step was" if skipped == 1 else f"{skipped} steps were"
        found.append(f"{steps} skipped for a non-finite loss or gradient")
    return found


def accuracy_tables(result: Result) -> Group:
    """Accuracy in the first setting on every task (columns) after every task (rows), split into
    tables of `COLUMNS` tasks, each of which fits in 80 characters."""
    matrix = result["class_incremental"]["accuracy_matrix"]
    tasks = range(len(matrix))
    return Group(
        f"accuracy on each task after each task ({setting_of(result)}, %)",
        *(_accuracy_table(matrix, tasks[i : i + COLUMNS]) for i in tasks[::COLUMNS]),
    )


def _accuracy_table(matrix: Sequence[Sequence[float | None]], columns: range) -> Table:
    """Rows start with the first column's task: earlier rows would be empty."""
    table = Table(box=HORIZONTALS, padding=(0, 1, 0, 0))
    table.add_column("after", justify="right")
    for task in columns:
        table.add_column(f"on {task + 1}", justify="right")
    for task in range(columns.start, len(matrix)):
        row = [matrix[task][column] for column in columns]
        table.add_row(f"{task + 1}", *("" if v is None else f"{v:.1f}" for v in row))
    return table


def provenance(result: Result) -> list[str]:
    """Lines about data, pre-trained weights and imported files; older versions did not record them.

    >>> provenance({"data": {"train": [9, 8], "test": [4, 4], "fingerprint": "0f"}})
    ['data: 17 training and 8 test images, 2 tasks of 8…9 and 4', 'fingerprint of the data: 0f']
    """
    lines = []
    if data := result.get("data"):
        train, test = data["train"], data["test"]
        images = f"{sum(train):,} training and {sum(test):,} test images"
        lines.append(f"data: {images}, {len(train)} tasks of {_span(train)} and {_span(test)}")
        lines.append(f"fingerprint of the data: {data['fingerprint']}")
    if before := result.get("extends"):
        tasks = f"{before['tasks']} task{'s' * (before['tasks'] != 1)}"
        lines.append(f"extends {before['run']}, which had trained {tasks}")
    if weights := result.get("pretrained"):
        lines.append(f"pre-trained weights: {weights['name']}, SHA-256 {weights['sha256']}")
    for file in result.get("imports", []):
        lines.append(f"imported file: {file['name']}, SHA-256 {file['sha256']}")
    for file in result.get("imports_before", []):
        lines.append(f"imported file of earlier steps: {file['name']}, SHA-256 {file['sha256']}")
    return lines


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}…{high:,}"
