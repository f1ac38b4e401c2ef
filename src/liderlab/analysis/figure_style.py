"""How figures look: told apart by everybody, in colour and in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart by everybody, and by their lightness in grey print
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
MARKERS = "osD^vP"
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))


def new_figure(width: float, height: float) -> Figure:
    """A figure that belongs to no window system and no global state."""
    from matplotlib.figure import Figure  # slow to import, and only needed to draw

    return Figure(figsize=(width, height), layout="constrained")
