"""Progress of downloads, unpacking and decoding."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Report = Callable[[str, int, int], None]
"""report(action, done, total), called often; total is 0 if unknown."""


class ProgressLines:
    """Prints a line to standard error every few seconds; short work prints nothing."""

    def __init__(self, seconds: float = 5.0) -> None:
        self._seconds, self._last = seconds, time.monotonic()

    def __call__(self, action: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= self._seconds:
            self._last = now
            print(f"{action}: {done:,} of {total:,}", file=sys.stderr, flush=True)
