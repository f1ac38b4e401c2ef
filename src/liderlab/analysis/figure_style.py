"""Colours, markers, sizes and saving of every figure, so that all of them look alike.

Series differ in colour and in dashes, markers or hatches: they can be told apart in grey print and
with any colour vision. Numbers of the paper are hollow diamonds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import chain, cycle
from pathlib import Path
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
    """A figure that needs no window system and no global state; sizes in inches.

    A notebook shows it as an image.
    """
    from .notebook_figure import NotebookFigure  # matplotlib is slow to import

    return NotebookFigure(figsize=(width, height), layout="constrained")


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
    """Draw series `number` in its colour, dashes and marker; spread: half the height of its band.

    Points without a value are skipped. style: matplotlib's options, instead of the usual ones.
    """
    import numpy as np

    place, value = (np.array(list(points), dtype=float) for points in (x, y))
    known = ~np.isnan(value)
    if not known.any():
        return
    kind = number % len(COLOURS)
    usual = {"color": COLOURS[kind], "ls": LINES[kind], "ms": 5}
    usual |= {"marker": MARKERS[kind]} if marker else {}
    axes.plot(place[known], value[known], label=label, **(usual | style))
    if spread is not None:
        half = np.array(list(spread), dtype=float)
        axes.fill_between(place, value - half, value + half, color=COLOURS[kind], alpha=0.18, lw=0)


def bar_style(number: int) -> dict[str, Any]:
    """Options of `Axes.bar` for series `number`."""
    kind = number % len(COLOURS)
    look = {"color": COLOURS[kind], "hatch": HATCHES[kind], "edgecolor": "white"}
    return look | {"linewidth": 0.5, "ecolor": "black", "capsize": 3}


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
    axes.grid(axis=axis, alpha=0.3)
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
