"""How far a long piece of work is, said to whoever wants to know."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Report = Callable[[str, int, int], None]
"""report(what, done, total), called often; total is 0 where it is not known."""


class Lines:
    """Plain lines on standard error, seldom: short work says nothing."""

    def __init__(self, seconds: float = 5.0) -> None:
        self._seconds, self._last = seconds, time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= self._seconds:
            self._last = now
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)


def silent(what: str, done: int, total: int) -> None:
    """Nobody wants to know."""
