"""Results as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.figure_style import add_grid, new_figure, plot_line, save_figure

Result = Mapping[str, Any]


def draw_comparison(results: Mapping[str, Sequence[Result]], path: Path, title: str) -> None:
    """Mean accuracy over the tasks so far, after every task; bands: ± one standard deviation."""
    import numpy as np

    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    for number, (label, runs) in enumerate(results.items()):
        curves = np.array([_accuracy_so_far(run) for run in runs])
        mean, std = curves.mean(0), curves.std(0, ddof=1) if len(runs) > 1 else None
        tasks = range(1, len(mean) + 1)
        plot_line(axes, number, tasks, mean, f"{label} ({mean[-1]:.1f})", spread=std, ls="-")
    axes.set(xlabel="tasks seen", ylabel="mean accuracy on them (%)", ylim=(0, 102), title=title)
    axes.set_xticks(tasks)
    add_grid(axes)
    axes.legend(title="method (FAA, %)", loc="lower left")
    save_figure(figure, path)


def _accuracy_so_far(result: Result) -> list[float]:
    """Mean over the tasks so far after each task; NaN before the first training (joint)."""
    matrix = result["class_incremental"]["accuracy_matrix"]
    means = []
    for t, row in enumerate(matrix):
        seen = row[: t + 1]
        means.append(float("nan") if None in seen else sum(seen) / len(seen))
    return means
