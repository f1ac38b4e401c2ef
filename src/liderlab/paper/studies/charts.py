"""The kinds of picture that studies share: bars, curves and matrices, drawn as for a paper.

Colours are Okabe and Ito's, which everybody can tell apart, with hatches, markers and dashes for
print in grey. The paper's own numbers are hollow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...analysis.figure_style import COLOURS, LINES, MARKERS, new_figure
from .cases import METHOD_NAMES
from .study_definition import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++")
Values = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    """One curve. spread: half the height of the band around it. paper: a number of the paper's."""

    label: str
    x: Sequence[float]
    y: Values
    spread: Values | None = None
    paper: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes with curves. diagonal: what chance gives, in a ROC."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
    diagonal: bool = False
    markers: bool = True


@dataclass(frozen=True)
class Matrix:
    """Values by row (y) and column (x), None where there is none."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[Any]
    y: Sequence[Any]
    values: Sequence[Values]


def accuracy_bars(
    rows: Sequence[Row],
    series: Mapping[str, tuple[str, str]],
    bounds: Sequence[Row] = (),
    metric: str = "faa",
) -> Figure:
    """A panel for every setting and buffer: methods side by side, a bar for every series.

    series: (addition, column) by label. bounds: rows drawn as horizontal lines.
    """
    cells = list(dict.fromkeys((row["setting"], row["paper_buffer"]) for row in rows))
    across = min(4, len(cells))
    down = -(-len(cells) // across)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    width = max(3.2, 0.5 + 0.26 * len(methods) * (len(series) + 1))
    figure = new_figure(max(across * width, 4.6), 2.7 * down + 0.7)
    panels = figure.subplots(down, across, squeeze=False, sharey="row").flat
    for panel, (setting, buffer) in zip(panels, cells, strict=False):
        here = [row for row in rows if (row["setting"], row["paper_buffer"]) == (setting, buffer)]
        _bars(panel, here, series, metric)
        _levels(panel, [row for row in bounds if row["setting"] == setting], metric)
        panel.set_title(_title(here[0]), fontsize=10)
    for spare in panels:
        spare.set_visible(False)
    for first_of_row in figure.axes[::across]:
        first_of_row.set_ylabel(f"{metric.upper()} (%)")
    _legend_below(figure)
    return figure


def _bars(
    panel: Any, rows: Sequence[Row], series: Mapping[str, tuple[str, str]], metric: str
) -> None:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cell = {(row["method"], row["addition"], row["column"]): row for row in rows}
    thick = 0.8 / len(series)
    for number, (label, key) in enumerate(series.items()):
        for place, method in enumerate(methods):
            row = cell.get((method, *key))
            if row is None or row[metric] is None:
                continue
            x = place + (number - (len(series) - 1) / 2) * thick
            panel.bar(
                x,
                row[metric],
                0.92 * thick,
                yerr=row[f"{metric}_std"],
                color=COLOURS[number],
                hatch=HATCHES[number],
                edgecolor="white",
                linewidth=0.5,
                ecolor="black",
                capsize=2,
                label=label,
            )
            if row[f"paper_{metric}"] is not None:
                style = {"mfc": "white", "mec": "black", "ms": 4.5, "ls": "none"}
                panel.plot(x, row[f"paper_{metric}"], marker="D", label="paper", **style)
    panel.set_xticks(range(len(methods)), [METHOD_NAMES.get(m, m) for m in methods], fontsize=8)
    if len(methods) > 3:
        panel.tick_params("x", rotation=20)
    panel.grid(axis="y", alpha=0.3)
    panel.set_axisbelow(True)


def _levels(panel: Any, bounds: Iterable[Row], metric: str) -> None:
    """Upper and lower bound as lines across the panel."""
    for row, dashes in zip(bounds, ("--", ":"), strict=False):
        if row[metric] is not None:
            panel.axhline(row[metric], color="0.35", ls=dashes, lw=1, label=row["label"])


def curves(panels: Sequence[Panel], across: int = 4) -> Figure:
    """Panels of curves side by side."""
    across = min(across, len(panels))
    down = -(-len(panels) // across)
    figure = new_figure(max(3.5 * across, 4.6), 3.1 * down + 0.5)
    axes = figure.subplots(down, across, squeeze=False).flat
    for axis, panel in zip(axes, panels, strict=False):
        _curve(axis, panel)
    for spare in axes:
        spare.set_visible(False)
    _legend_below(figure)
    return figure


def _curve(axis: Any, panel: Panel) -> None:
    """A paper's line takes the colour of ours before it."""
    number = -1
    for line in panel.lines:
        number += not line.paper
        pairs = [(x, y) for x, y in zip(line.x, line.y, strict=True) if y is not None]
        if not pairs:
            continue
        style: dict[str, Any] = {"color": COLOURS[number % 6], "ls": LINES[number % 6]}
        if panel.markers:
            style["marker"] = MARKERS[number % 6]
        if line.paper:
            style |= {"mfc": "none", "ls": ":", "lw": 1}
        axis.plot(*zip(*pairs, strict=True), label=line.label, ms=5, **style)
        if line.spread is not None and all(s is not None for s in line.spread):
            low = [y - s for y, s in zip(line.y, line.spread, strict=True)]  # type: ignore[operator]
            high = [y + s for y, s in zip(line.y, line.spread, strict=True)]  # type: ignore[operator]
            axis.fill_between(line.x, low, high, color=style["color"], alpha=0.2, lw=0)
    if panel.diagonal:
        axis.plot([0, 1], [0, 1], color="0.5", lw=0.8, ls=(0, (2, 2)), label="chance")
        axis.set_aspect("equal")
    axis.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    axis.set_xscale("log" if panel.log_x else "linear")
    axis.set_yscale("log" if panel.log_y else "linear")
    if panel.log_x:
        ticks = sorted({x for line in panel.lines for x in line.x})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
    axis.title.set_fontsize(10)
    axis.grid(alpha=0.3)


def matrices(panels: Sequence[Matrix], label: str) -> Figure:
    """Matrices on one diverging scale around zero, with their numbers printed."""
    figure = new_figure(3.1 * len(panels) + 0.9, 3.4)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    numbers = [v for panel in panels for row in panel.values for v in row if v is not None]
    most = max((abs(v) for v in numbers), default=0) or 1.0
    for axis, panel in zip(axes, panels, strict=True):
        filled = [[float("nan") if v is None else v for v in row] for row in panel.values]
        image = axis.imshow(filled, cmap="PuOr_r", vmin=-most, vmax=most, origin="lower")
        axis.set_title(panel.title, fontsize=10)
        axis.set(xlabel=panel.x_label, ylabel=panel.y_label)
        axis.set_xticks(range(len(panel.x)), [f"{x:g}" for x in panel.x])
        axis.set_yticks(range(len(panel.y)), [f"{y:g}" for y in panel.y])
        for i, row in enumerate(panel.values):
            for j, value in enumerate(row):
                if value is not None:
                    colour = "white" if abs(value) > 0.6 * most else "black"
                    axis.text(j, i, f"{value:+.1f}", ha="center", va="center", color=colour)
    figure.colorbar(image, ax=list(axes), label=label, shrink=0.85)
    return figure


def _legend_below(figure: Figure) -> None:
    """One legend for all panels, below them."""
    found: dict[str, Any] = {}
    for axis in figure.axes:
        handles, labels = axis.get_legend_handles_labels()
        for handle, text in zip(handles, labels, strict=True):
            found.setdefault(text, handle)
    last = ("paper", "chance", "Joint", "Finetune")
    order = sorted(found, key=lambda text: last.index(text) if text in last else -1)
    if found:
        figure.legend(
            [found[text] for text in order],
            order,
            loc="outside lower center",
            ncols=max(1, min(len(found), int(figure.get_size_inches()[0] / 2.1))),
            frameon=False,
            fontsize=9,
        )


def _title(row: Row) -> str:
    pretrained = ", pre-trained" if "pretrained" in row["setting"] else ""
    tasks = f", {row['tasks']} tasks" if "online" in row["setting"] else ""
    return f"{row['benchmark']}{pretrained}{tasks}\nbuffer {row['buffer']}"
