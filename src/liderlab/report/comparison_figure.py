"""Results as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.figure_style import COLOURS, MARKERS, new_figure
from ..runs.accuracy_figure import save

Result = Mapping[str, Any]


def draw_comparison(results: Mapping[str, Sequence[Result]], path: Path, title: str) -> None:
    """Mean accuracy over the tasks so far, after every task; bands: ± one standard deviation."""
    import numpy as np

    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    for number, (label, runs) in enumerate(results.items()):
        curves = np.array([_accuracy_so_far(run) for run in runs])
        mean, std = curves.mean(0), curves.std(0, ddof=1) if len(runs) > 1 else 0 * curves[0]
        tasks = np.arange(1, len(mean) + 1)
        colour, marker = COLOURS[number % 6], MARKERS[number % 6]
        axes.plot(tasks, mean, label=f"{label} ({mean[-1]:.1f})", color=colour, marker=marker)
        axes.fill_between(tasks, mean - std, mean + std, color=colour, alpha=0.2, lw=0)
    axes.set(xlabel="tasks seen", ylabel="mean accuracy on them (%)", ylim=(0, 102), title=title)
    axes.set_xticks(tasks)
    axes.grid(alpha=0.3)
    axes.legend(title="method (FAA, %)", loc="lower left")
    save(figure, path)


def _accuracy_so_far(result: Result) -> list[float]:
    """Mean over the tasks so far after each task; NaN before the first training (joint)."""
    matrix = result["class_incremental"]["accuracy_matrix"]
    means = []
    for t, row in enumerate(matrix):
        seen = row[: t + 1]
        means.append(float("nan") if None in seen else sum(seen) / len(seen))
    return means
