"""Colours, markers, sizes, headings and saving of every figure, so that all of them look alike.

A method has one hue, the same as in the report: solid lines without, dashed ones and hollow markers
with a regulariser. Other series differ in colour and in dashes, markers or hatches. Numbers of the
paper are hollow diamonds. A figure is as wide as a page at most, so that it is printed unscaled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import chain, cycle
from pathlib import Path
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any

from ..files import write_atomically

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

METHOD_COLOURS = {  # after Okabe and Ito; the report's light theme has the same
    "er-ace": "#0072b2",
    "der++": "#d98200",
    "x-der-rpc": "#009e73",
    "icarl": "#b8558f",
    "er": "#3fa0d8",
    "der": "#c44e00",
    "gmed": "#6a4fb3",
    "gdumb": "#7d7a1c",
}
COLOURS = tuple(METHOD_COLOURS.values())
REFERENCES = ("finetune", "joint")  # grey
MARKERS = "osD^vPX<"
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 1, 1, 1)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "ooo", "---")
GREY = "0.5"  # reference lines: chance, bounds, task borders
SEQUENTIAL, DIVERGING = "cividis", "PuOr_r"  # colour maps
SMALL, NORMAL, TITLE = 8, 9, 10  # font sizes
PAGE = 7.2  # inches: the width of a page's text
AXES: dict[Any, Any] = {  # matplotlib's settings for new axes
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.edgecolor", "grid.color"), "0.75"),
    **dict.fromkeys(("xtick.color", "ytick.color"), "0.75"),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor", "axes.labelcolor"), "0.25"),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), SMALL),
    "axes.labelsize": NORMAL,
}
PRINTED: dict[str, Any] = {"marker": "D", "mfc": "white", "mec": "black", "ms": 5, "ls": "none"}
"""The marker of a number that the paper prints."""


def hues(methods: Iterable[str]) -> dict[str, int]:
    """A number of `COLOURS` for each method, −1 for a reference; own methods take unused ones.

    >>> hues(["er-ace", "mine", "joint", "er-ace"])
    {'er-ace': 0, 'mine': 1, 'joint': -1}
    """
    names = list(dict.fromkeys(methods))
    known = {name: number for number, name in enumerate(METHOD_COLOURS)}
    known |= dict.fromkeys(REFERENCES, -1)
    numbers, taken = range(len(COLOURS)), {known.get(name) for name in names}
    own = chain((number for number in numbers if number not in taken), cycle(numbers))
    return {name: known[name] if name in known else next(own) for name in names}


def new_figure(width: float, height: float) -> Figure:
    """A figure that needs no window system and no global state; sizes in inches, at most a page.

    A notebook shows it as an image.
    """
    from .notebook_figure import NotebookFigure  # matplotlib is slow to import

    return NotebookFigure(figsize=(min(width, PAGE), height), layout="constrained")


def add_heading(figure: Figure, title: str, facts: Iterable[str]) -> None:
    """A title above all panels and, below it, the facts: data set, scale, number of seeds."""
    width, height = figure.get_size_inches()
    room = int(width / 0.068)  # characters of a line
    below = wrap(" · ".join(fact for fact in facts if fact), room)
    figure.set_size_inches(width, height + 0.2 * (1 + len(below)))
    height = figure.get_size_inches()[1]
    look: Any = {"x": 0.012, "ha": "left"}
    above = fill(title, int(width / 0.092))
    figure.suptitle(above + "\n" * len(below), fontsize=TITLE + 1, weight="bold", **look)
    down = 0.06 + (TITLE + 1) * 1.25 * (above.count("\n") + 1) / 72
    figure.text(
        y=1 - down / height, s="\n".join(below), va="top", fontsize=SMALL, color="0.35", **look
    )


def method_of(label: str) -> tuple[str, bool]:
    """The method that a label begins with, and whether a regulariser follows.

    >>> method_of("ER-ACE + LiDER (77.6)"), method_of("der++, paper"), method_of("chance")
    (('er-ace', True), ('der++', False), ('chance', False))
    """
    name = re.split(r" \+ |[,:]| \(", label, maxsplit=1)[0].strip().lower()
    return name, label[len(name) :].startswith(" + ")


def line_style(number: int, label: str) -> dict[str, Any]:
    """The look of a method's line; of series `number` if the label names no known method."""
    method, addition = method_of(label)
    kind = number % len(COLOURS)
    if method not in METHOD_COLOURS and method not in REFERENCES:
        return {"color": COLOURS[kind], "ls": LINES[kind], "marker": MARKERS[kind]}
    colour = METHOD_COLOURS.get(method, "0.15" if method == "joint" else "0.5")
    hollow = {"ls": "--", "mfc": "white"} if addition else {"ls": "-"}
    return {"color": colour, "marker": "o", **hollow}


def plot_line(
    axes: Axes,
    number: int,
    x: Iterable[float],
    y: Iterable[float | None],
    label: str,
    *,
    spread: Iterable[float | None] | None = None,
    marker: bool = True,
    **style: Any,
) -> None:
    """Draw a method's curve, or series `number`, in its colour, dashes and marker; spread: half the
    height of its band.

    Points without a value are skipped. style: matplotlib's options, instead of the usual ones.
    """
    import numpy as np

    place, value = (np.array(list(points), dtype=float) for points in (x, y))
    known = ~np.isnan(value)
    if not known.any():
        return
    look = {**line_style(number, label), "ms": 5}
    drawn = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
    if (look["color"], look["ls"]) in drawn:  # another variant of a method
        free = [dashes for dashes in LINES if (look["color"], dashes) not in drawn]
        look["ls"] = free[0] if free else look["ls"]
    if not marker:
        look = {key: value for key, value in look.items() if key not in ("marker", "mfc", "ms")}
    axes.plot(place[known], value[known], label=label, **(look | style))
    if spread is not None:
        half = np.array(list(spread), dtype=float)
        axes.fill_between(place, value - half, value + half, color=look["color"], alpha=0.15, lw=0)


def bar_style(number: int, method: str = "") -> dict[str, Any]:
    """Options of `Axes.bar` for series `number`, in the hue of a method if one is given."""
    kind = number % len(COLOURS)
    colour = METHOD_COLOURS.get(method, COLOURS[kind])
    look = {"color": colour, "hatch": HATCHES[kind], "edgecolor": "white"}
    return look | {"linewidth": 0.5, "ecolor": "0.15", "capsize": 3}


def add_series_keys(axes: Axes, labels: Iterable[str]) -> None:
    """Grey patches for the legend of bars in the hues of methods: hatches tell the series."""
    for number, label in enumerate(labels):
        hatch = HATCHES[number % len(HATCHES)]
        axes.fill_between([], [], label=label, color=GREY, hatch=hatch, edgecolor="white", lw=0)


def draw_matrix(
    axes: Axes,
    values: Sequence[Sequence[float | None]] | np.ndarray,
    limits: tuple[float, float],
    *,
    form: str | None,
    cmap: str = SEQUENTIAL,
    **options: Any,
) -> AxesImage:
    """Draw a matrix as colours, each value printed in `form`; None and NaN stay empty."""
    import numpy as np

    low, high = limits
    filled = np.array(values, dtype=float)
    image = axes.imshow(filled, cmap=cmap, vmin=low, vmax=high, **options)
    for (row, column), value in np.ndenumerate(filled):
        if form is not None and not np.isnan(value):
            lightness = image.to_rgba(np.array([value]))[0, :3] @ (0.3, 0.59, 0.11)
            colour = "black" if lightness > 0.5 else "white"
            axes.text(column, row, format(value, form), ha="center", va="center", color=colour)
    return image


def add_grid(axes: Axes, axis: Any = "both") -> None:
    axes.grid(axis=axis, alpha=0.5, lw=0.6)
    axes.set_axisbelow(True)


def legend_below(figure: Figure, *, columns: int | None = None, title: str | None = None) -> None:
    """One legend for all panels, below them: every label once, references last."""
    found: dict[str, Any] = {}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    last = ("paper", "chance", "Joint", "Finetune")
    order = sorted(found, key=lambda label: last.index(label) if label in last else -1)
    fitting = max(1, min(len(found), int(figure.get_size_inches()[0] / 2.1)))
    if found:
        figure.legend(
            [found[label] for label in order],
            order,
            loc="outside lower center",
            ncols=columns or fitting,
            frameon=False,
            fontsize=NORMAL,
            title=title,
            title_fontsize=NORMAL,
        )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a PNG or PDF atomically, without date or version: equal figures give equal files."""
    buffer = BytesIO()
    dated = "Software" if path.suffix == ".png" else "CreationDate"
    figure.savefig(buffer, format=path.suffix[1:], dpi=150, metadata={dated: None})
    write_atomically(path, buffer.getvalue())


def small_png(figure: Figure) -> bytes:
    """A PNG of 64 colours, small enough to commit."""
    from PIL import Image

    drawn, small = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=120, metadata={"Software": None})
    image = Image.open(drawn).convert("RGB")
    image.quantize(64, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()
