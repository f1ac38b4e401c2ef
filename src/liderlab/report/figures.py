"""Results as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis.style import COLOURS, MARKERS, new_figure
from ..experiments.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Result = Mapping[str, Any]


def save(figure: Figure, path: Path) -> None:
    buffer = BytesIO()
    figure.savefig(buffer, format=path.suffix[1:], dpi=150, metadata={"Software": None})
    write_atomically(path, lambda file: file.write(buffer.getvalue()))


def draw_accuracy_matrix(result: Result, path: Path) -> None:
    """Accuracy on every task after every task, both settings side by side."""
    tasks = len(result["class_incremental"]["accuracy_matrix"])
    side = 1.6 + 0.42 * tasks
    figure = new_figure(2 * side + 0.8, side + 0.4)
    panels = figure.subplots(1, 2)
    ticks = range(tasks)
    for panel, setting in zip(panels, ("class_incremental", "task_incremental"), strict=True):
        matrix = _lower_triangle(result[setting]["accuracy_matrix"])
        image = panel.imshow(matrix, vmin=0, vmax=100, cmap="cividis")
        panel.set_title(f"{setting.replace('_', '-')}, FAA {_percent(result[setting]['faa'])}")
        panel.set_xlabel("accuracy on task")
        panel.set_ylabel("after training task")
        panel.set_xticks(ticks, [str(t + 1) for t in ticks])
        panel.set_yticks(ticks, [str(t + 1) for t in ticks])
        if tasks <= 10:
            _print_values(panel, matrix)
    figure.colorbar(image, ax=panels, label="accuracy (%)", shrink=0.8)
    save(figure, path)


def _print_values(panel: Any, matrix: list[list[float]]) -> None:
    for t, row in enumerate(matrix):
        for i, value in enumerate(row):
            if value == value:
                colour = "black" if value > 55 else "white"
                panel.text(i, t, f"{value:.0f}", ha="center", va="center", color=colour)


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


def _lower_triangle(matrix: Sequence[Sequence[float | None]]) -> list[list[float]]:
    return [
        [float("nan") if value is None or i > t else value for i, value in enumerate(row)]
        for t, row in enumerate(matrix)
    ]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} %"
