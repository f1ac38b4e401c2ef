"""The kinds of figure that studies share: bars, curves and matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...analysis import figure_style as style
from .cases import METHOD_NAMES, on_papers_data
from .study_definition import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    """One curve. spread: half the height of its band. paper: printed in the paper, so hollow."""

    label: str
    x: Sequence[float]
    y: Values
    spread: Values | None = None
    paper: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes with curves. roc: a ROC curve, with the diagonal that chance gives."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    roc: bool = False


@dataclass(frozen=True)
class Matrix:
    """Values by row (y) and column (x); None where there is no value."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    y: Sequence[float]
    values: Sequence[Values]


def accuracy_bars(
    rows: Sequence[Row], series: Mapping[str, tuple[str, str]], bounds: Sequence[Row] = ()
) -> Figure:
    """FAA with a panel per setting and buffer: methods side by side, a bar for every series.

    series: (addition, column) by label. bounds: rows drawn as horizontal lines.
    """
    cells = list(dict.fromkeys((row["setting"], row["paper_buffer"]) for row in rows))
    methods = {row["method"] for row in rows}
    width = max(3.2, 0.5 + 0.2 * len(methods) * (len(series) + 1))
    across, down = _layout(len(cells), width)
    figure = style.new_figure(max(across * width, 4.6), 2.5 * down + 0.7)
    panels = _panels(figure, len(cells), width, sharey="row")
    for panel, (setting, buffer) in zip(panels, cells, strict=True):
        here = [row for row in rows if (row["setting"], row["paper_buffer"]) == (setting, buffer)]
        _bars(panel, here, series)
        levels = [row for row in bounds if row["setting"] == setting and row["faa"] is not None]
        for row, dashes in zip(levels, ("--", ":"), strict=False):
            panel.axhline(row["faa"], color=style.GREY, ls=dashes, lw=1, label=row["label"])
        panel.set_title(_title(here[0]), fontsize=style.TITLE)
    for first_of_row in figure.axes[::across]:
        first_of_row.set_ylabel("FAA (%)")
    style.legend_below(figure)
    return figure


def _bars(panel: Any, rows: Sequence[Row], series: Mapping[str, tuple[str, str]]) -> None:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cell = {(row["method"], row["addition"], row["column"]): row for row in rows}
    thick = 0.8 / len(series)
    style.add_series_keys(panel, series)
    for number, key in enumerate(series.values()):
        for place, method in enumerate(methods):
            row = cell.get((method, *key))
            if row is None or row["faa"] is None:
                continue
            x = place + (number - (len(series) - 1) / 2) * thick
            look = style.bar_style(number, method)
            panel.bar(x, row["faa"], 0.92 * thick, yerr=row["faa_std"], **look)
            if row["paper_faa"] is not None and on_papers_data(row):
                panel.plot(x, row["paper_faa"], label="paper", **style.PRINTED)
    panel.set_xticks(range(len(methods)), [METHOD_NAMES.get(m, m) for m in methods])
    panel.tick_params("x", labelsize=style.SMALL, rotation=20 if len(methods) > 3 else 0)
    style.add_grid(panel, "y")


def curves(panels: Sequence[Panel]) -> Figure:
    """Panels of curves side by side."""
    across, down = _layout(len(panels), 3.5)
    figure = style.new_figure(max(3.5 * across, 4.6), 2.8 * down + 0.5)
    for axes, panel in zip(_panels(figure, len(panels), 3.5), panels, strict=True):
        _curves(axes, panel)
    style.legend_below(figure)
    return figure


def _curves(axes: Any, panel: Panel) -> None:
    """A line of the paper takes the colour of ours before it."""
    number = -1
    for line in panel.lines:
        number += not line.paper
        hollow: Any = {"mfc": "none", "ls": ":", "lw": 1, "marker": "D"} if line.paper else {}
        given: Any = {"spread": line.spread, "marker": not panel.roc, **hollow}
        style.plot_line(axes, number, line.x, line.y, line.label, **given)
    if panel.roc:
        axes.plot([0, 1], [0, 1], color=style.GREY, lw=0.8, ls=(0, (2, 2)), label="chance")
        axes.set_aspect("equal")
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    axes.set_title(panel.title, fontsize=style.TITLE)
    if panel.log_x:
        axes.set_xscale("log")
        ticks = sorted({x for line in panel.lines for x in line.x})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    style.add_grid(axes)


def gain_chart(rows: Sequence[Row], of: str) -> Figure:
    """One line per row: its gain as a point, with its 95 % interval if it has one.

    of: the gain's name, with its unit.
    """
    figure = style.new_figure(7.2, 0.27 * len(rows) + 1.1)
    axes = figure.subplots()
    for place, row in enumerate(rows):
        low, high = row.get("gain_low"), row.get("gain_high")
        colour = style.COLOURS[row["hue"] % len(style.COLOURS)]
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=colour, lw=1.5)
        axes.plot(row["gain"], place, "o", color=colour, ms=5)
    axes.axvline(0, color=style.GREY, ls="--", lw=1)
    axes.set_yticks(range(len(rows)), [row["kind"] for row in rows], fontsize=style.SMALL)
    axes.invert_yaxis()
    axes.set_xlabel(of)
    method, seeds = METHOD_NAMES.get(rows[0]["method"], rows[0]["method"]), rows[0]["seeds"]
    where = _title(rows[0]).replace("\n", ", ")
    axes.set_title(f"{method} on {where}, seeds: {seeds}", fontsize=style.TITLE)
    style.add_grid(axes, "x")
    return figure


def matrices(panels: Sequence[Matrix], label: str) -> Figure:
    """Matrices on one diverging scale around zero, with their numbers printed."""
    across, down = _layout(len(panels), 3.1)
    figure = style.new_figure(3.1 * across + 0.9, 3.1 * down)
    axes = list(_panels(figure, len(panels), 3.1))
    numbers = [v for panel in panels for row in panel.values for v in row if v is not None]
    most = max((abs(v) for v in numbers), default=0) or 1.0
    options: Any = {"form": "+.1f", "cmap": style.DIVERGING, "origin": "lower"}
    for axis, panel in zip(axes, panels, strict=True):
        image = style.draw_matrix(axis, panel.values, (-most, most), **options)
        axis.set_title(panel.title, fontsize=style.TITLE)
        axis.set(xlabel=panel.x_label, ylabel=panel.y_label)
        axis.set_xticks(range(len(panel.x)), [f"{x:g}" for x in panel.x])
        axis.set_yticks(range(len(panel.y)), [f"{y:g}" for y in panel.y])
        axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=list(axes), label=label, shrink=0.85)
    return figure


def gains(rows: Sequence[Row]) -> Figure:
    """A heat map of gains with their intervals: methods down, regularisers across. A cell is pale
    if its interval holds zero, or if it has none."""
    methods, columns = (
        list(dict.fromkeys(row[key] for row in rows)) for key in ("method", "column")
    )
    cell = {(row["method"], row["column"]): row for row in rows}
    table = [[cell.get((method, column)) for column in columns] for method in methods]
    values = [[None if row is None else float(row["gain"]) for row in line] for line in table]
    most = max((abs(v) for line in values for v in line if v is not None), default=0) or 1.0
    shades = [[1.0 if row and clear(row) else PALE for row in line] for line in table]
    figure = style.new_figure(1.15 * len(columns) + 2.4, 0.62 * len(methods) + 1.5)
    axes = figure.subplots()
    image = style.draw_matrix(
        axes, values, (-most, most), form=None, cmap=style.DIVERGING, alpha=shades, aspect="auto"
    )
    for y, line in enumerate(table):
        for x, row in enumerate(line):
            if row is not None:
                dark = clear(row) and abs(row["gain"]) > most / 2
                look: Any = {"ha": "center", "va": "center", "fontsize": style.SMALL}
                axes.text(x, y, _gain(row), color="white" if dark else "black", **look)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(methods)), [METHOD_NAMES.get(m, m) for m in methods])
    figure.colorbar(image, ax=axes, label="ΔFAA (points)", shrink=0.9)
    return figure


PALE = 0.25


def clear(row: Row) -> bool:
    """Whether the interval of a gain leaves out zero.

    >>> clear({"gain_low": -0.5, "gain_high": 2.0}), clear({"gain_low": 0.1, "gain_high": 2.0})
    (False, True)
    """
    low, high = row["gain_low"], row["gain_high"]
    return low is not None and (low > 0 or high < 0)


def _gain(row: Row) -> str:
    gain, low, high = row["gain"], row["gain_low"], row["gain_high"]
    return f"{gain:+.1f}" if low is None else f"{gain:+.1f}\n{low:+.1f} … {high:+.1f}"


def _layout(panels: int, width: float) -> tuple[int, int]:
    """Panels of this width across, as many as fit on a page, and rows of them."""
    across = max(1, min(panels, int(style.PAGE / width)))
    return across, -(-panels // across)


def _panels(figure: Figure, count: int, width: float, **options: Any) -> Iterator[Any]:
    """That many axes; the rest of the last row is hidden."""
    across, down = _layout(count, width)
    axes = list(figure.subplots(down, across, squeeze=False, **options).flat)
    for spare in axes[count:]:
        spare.set_visible(False)
    return iter(axes[:count])


def _title(row: Row) -> str:
    pretrained = ", pre-trained" if "pretrained" in row["setting"] else ""
    tasks = f", {row['tasks']} tasks" if "online" in row["setting"] else ""
    return f"{row['benchmark']}{pretrained}{tasks}\nbuffer {row['buffer']}"
