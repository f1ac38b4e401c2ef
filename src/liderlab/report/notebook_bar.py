"""A progress bar in a notebook. It needs IPython, which every notebook has, and no widgets."""

from __future__ import annotations

from html import escape
from typing import Any


class NotebookBar:
    """An HTML progress element that is replaced in place, with text beside and below it."""

    def __init__(self, total: float) -> None:
        self._total, self._done = total, 0.0
        self._text, self._left, self._below = "starting", "", ""
        self._handle: Any = None

    def start(self) -> None:
        from IPython.display import display

        self._handle = display(self._content(), raw=True, display_id=True)

    def stop(self) -> None:
        """Nothing to do: the last state stays in the notebook."""

    def show(
        self, done: float, text: str | None = None, left: str = "", below: str | None = None
    ) -> None:
        """Show that `done` of the total is done, with new texts; None leaves a text unchanged."""
        self._done, self._left = done, left
        self._text = self._text if text is None else text
        self._below = self._below if below is None else below
        self._handle.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        share = self._done / self._total
        text = f"{self._text} {share:.0%}{self._left}"
        bar = f'<progress value="{share:.4f}" max="1"></progress> {escape(text)}'
        lines = (f"<br><small>{escape(line)}</small>" for line in self._below.splitlines())
        return {"text/html": f"<div>{bar}{''.join(lines)}</div>", "text/plain": text}
