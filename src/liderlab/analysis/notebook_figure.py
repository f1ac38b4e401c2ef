"""Figures that a notebook shows without pyplot, which would keep every figure in memory."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from .figure_style import AXES


class NotebookFigure(Figure):
    def add_subplot(self, *args: Any, **options: Any) -> Any:
        """New axes in the look of all figures, whatever the user's settings are."""
        with rc_context(AXES):
            return super().add_subplot(*args, **options)

    def add_axes(self, *args: Any, **options: Any) -> Any:
        """The same for colour bars."""
        with rc_context(AXES):
            return super().add_axes(*args, **options)

    def _repr_png_(self) -> bytes:
        """The image that Jupyter shows for the last value of a cell."""
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()
