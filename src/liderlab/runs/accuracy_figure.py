"""accuracy.png, the figure in the folder of a finished run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis.figure_style import draw_matrix, new_figure, save_figure
from .result_schema import settings_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger("liderlab")

Result = Mapping[str, Any]
NAME = "accuracy.png"


def leave_figure(result: Result, folder: Path) -> None:
    """Draw the figure unless the folder has one.

    Call it after result.json is written, so that a crash loses nothing but the figure. Without
    space for it the run has succeeded all the same.
    """
    if not (folder / NAME).is_file():
        try:
            draw_accuracy_matrix(result, folder / NAME)
        except OSError as error:
            log.warning("cannot write %s: %s", folder / NAME, error.strerror or error)


def draw_accuracy_matrix(result: Result, path: Path) -> None:
    save_figure(accuracy_figure(result), path)


def accuracy_figure(result: Result) -> Figure:
    """Accuracy on every task after every task, the settings side by side."""
    tasks = len(result["class_incremental"]["accuracy_matrix"])
    side = 1.6 + 0.42 * tasks
    settings = settings_of(result)
    figure = new_figure(len(settings) * side + 0.8, side + 0.4)
    panels = figure.subplots(1, len(settings), squeeze=False)[0]
    ticks = range(tasks)
    for panel, (setting, label) in zip(panels, settings.items(), strict=True):
        matrix = _lower_triangle(result[setting]["accuracy_matrix"])
        image = draw_matrix(panel, matrix, (0, 100), form=".0f" if tasks <= 10 else None)
        panel.set_title(f"{label}, FAA {_percent(result[setting]['faa'])}")
        panel.set_xlabel("accuracy on task")
        panel.set_ylabel("after training task")
        panel.set_xticks(ticks, [str(t + 1) for t in ticks])
        panel.set_yticks(ticks, [str(t + 1) for t in ticks])
    figure.colorbar(image, ax=panels, label="accuracy (%)", shrink=0.8)
    return figure


def _lower_triangle(matrix: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    return [
        [value if i <= t else None for i, value in enumerate(row)] for t, row in enumerate(matrix)
    ]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} %"
