"""Figures that a notebook shows without pyplot, which would keep every figure in memory."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    def _repr_png_(self) -> bytes:
        """The image that Jupyter shows for the last value of a cell."""
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()
