"""A run's confusion matrix, small enough for the page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any

ALL_MATRICES = 4_000_000  # bytes for the matrices of all runs together
LARGEST_MATRIX = 100_000

Counts = Sequence[Sequence[int]]


def confusion_view(result: Mapping[str, Any], runs: int) -> dict[str, Any] | None:
    """The matrix of classes, if it fits in a report of `runs` runs, and that of tasks.

    Rows are true, columns predicted; borders are the first classes of all tasks but the first, and
    there are none if the tasks share their classes. None for a run that has not finished.
    """
    counts: Counts = result.get("class_incremental", {}).get("confusion_matrix") or []
    if not counts:
        return None
    shared = result.get("setting") == "domain-incremental"
    images = [] if shared else (result.get("data") or {}).get("test") or []
    borders = task_borders(counts, images)
    classes = [packed(row) for row in counts]
    fits = len(json.dumps(classes, separators=(",", ":"))) <= min(
        LARGEST_MATRIX, ALL_MATRICES // runs
    )
    tasks = [packed(row) for row in by_task(counts, borders)]
    kept = {"classes": classes if fits else None, "tasks": tasks if borders else None}
    return {**kept, "borders": borders} if any(kept.values()) else None


def task_borders(counts: Counts, images: Sequence[int]) -> list[int]:
    """The class at which each task but the first begins. images: test images of every task.

    >>> task_borders([[3, 1], [0, 4]], [4, 4])
    [1]
    """
    seen, wanted = list(accumulate(sum(row) for row in counts)), list(accumulate(images))
    return [seen.index(total) + 1 for total in wanted[:-1] if total in seen]


def by_task(counts: Counts, borders: Sequence[int]) -> list[list[int]]:
    """The counts of classes, summed over the classes of each task.

    >>> by_task([[2, 1, 0], [0, 3, 1], [0, 0, 5]], [2])
    [[6, 1], [0, 5]]
    """
    ends = [0, *borders, len(counts)]
    spans = [slice(*pair) for pair in pairwise(ends)]
    return [[sum(sum(row[there]) for row in counts[here]) for there in spans] for here in spans]


def packed(row: Sequence[int]) -> list[int]:
    """The row with each run of zeros as minus its length.

    >>> packed([0, 0, 0, 5, 1, 0])
    [-3, 5, 1, -1]
    """
    parts = ((zero, list(values)) for zero, values in groupby(row, lambda value: value == 0))
    return [n for zero, values in parts for n in ([-len(values)] if zero else values)]
