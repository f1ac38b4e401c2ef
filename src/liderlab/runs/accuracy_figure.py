"""accuracy.png, the figure in the folder of a finished run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis.figure_style import (
    PAGE,
    SMALL,
    TITLE,
    add_heading,
    draw_matrix,
    new_figure,
    save_figure,
)
from .folder import RunFolder
from .result_schema import settings_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger("liderlab")

Result = Mapping[str, Any]
NAME = "accuracy.png"


def leave_figure(result: Result, folder: Path) -> None:
    """Draw the figure unless the folder has one, or no longer holds this result.

    Call it after result.json is written, so that a crash loses nothing but the figure. Without
    space for it the run has succeeded all the same.
    """
    if not (folder / NAME).is_file() and RunFolder(folder).holds(result):
        try:
            draw_accuracy_matrix(result, folder / NAME)
        except OSError as error:
            log.warning("cannot write %s: %s", folder / NAME, error.strerror or error)


def draw_accuracy_matrix(result: Result, path: Path) -> None:
    save_figure(accuracy_figure(result), path)


def accuracy_figure(result: Result) -> Figure:
    """Accuracy on every task after every task, the settings side by side."""
    tasks = len(result["class_incremental"]["accuracy_matrix"])
    settings = settings_of(result)
    side = min(1.6 + 0.42 * tasks, (PAGE - 0.8) / len(settings))
    figure = new_figure(max(len(settings) * side + 0.8, 5.0), side + 0.2)
    panels = figure.subplots(1, len(settings), squeeze=False)[0]
    ticks = range(tasks)
    for panel, (setting, label) in zip(panels, settings.items(), strict=True):
        matrix = _lower_triangle(result[setting]["accuracy_matrix"])
        image = draw_matrix(panel, matrix, (0, 100), form=".0f" if tasks <= 10 else None)
        title = f"{label}, FAA {_percent(result[setting]['faa'])}"
        panel.set_title(title, fontsize=TITLE if side > 3 else SMALL)
        panel.set_xlabel("accuracy on task")
        panel.set_ylabel("after training task")
        panel.set_xticks(ticks, [str(t + 1) for t in ticks])
        panel.set_yticks(ticks, [str(t + 1) for t in ticks])
        panel.spines[:].set_visible(False)
    figure.colorbar(image, ax=panels, label="accuracy (%)", shrink=0.8)
    add_heading(figure, "Accuracy on every task after every task", _facts(result["config"]))
    return figure


def _facts(config: Mapping[str, Any]) -> list[str]:
    """Method, data set, buffer, scale and seed."""
    method = " + ".join([config["method"]["name"], *config["regularizers"]])
    scale = (config.get("scale") or {}).get("name", "full")
    where = [config["benchmark"]["name"], f"buffer {config['memory']['size']}", f"scale {scale}"]
    return [method, *where, f"seed {config['seed']}"]


def _lower_triangle(matrix: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    return [
        [value if i <= t else None for i, value in enumerate(row)] for t, row in enumerate(matrix)
    ]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} %"
