"""Accuracy over the stream, several methods in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.figure_style import PAGE, add_grid, add_heading, new_figure, plot_line, save_figure
from .run_records import accuracy_so_far


def draw_accuracy_curves(
    results: Mapping[str, Sequence[Mapping[str, Any]]], path: Path, title: str
) -> None:
    """Mean accuracy on the tasks seen so far, after every task; bands: ± one standard deviation."""
    import numpy as np

    figure = new_figure(PAGE, 3.8)
    axes = figure.subplots()
    for number, (label, runs) in enumerate(results.items()):
        matrices = [run["class_incremental"]["accuracy_matrix"] for run in runs]
        curves = np.array([accuracy_so_far(matrix) for matrix in matrices], dtype=float)
        mean, std = curves.mean(0), curves.std(0, ddof=1) if len(runs) > 1 else None
        tasks = range(1, len(mean) + 1)
        plot_line(axes, number, tasks, mean, f"{label} ({mean[-1]:.1f})", spread=std)
    axes.set(xlabel="tasks seen", ylabel="mean accuracy on them (%)", ylim=(0, 102))
    axes.set_xticks(tasks)
    add_grid(axes)
    axes.legend(title="method (FAA, %)", loc="lower left", frameon=False)
    counts = sorted({len(runs) for runs in results.values()})
    seeds = "…".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    facts = [title, f"{seeds} seed{'s' * (counts[-1] > 1)}", "bands: ± one standard deviation"]
    add_heading(figure, "Mean accuracy on the tasks seen so far", facts)
    save_figure(figure, path)
