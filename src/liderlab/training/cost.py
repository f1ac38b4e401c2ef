"""The cost of training, counted as a run goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..distributed.team import Team


@dataclass
class Cost:
    """steps: of the optimizer. passes: of single images forward through the network, on all ranks;
    None after a checkpoint of an older version, which did not count them. seconds: of steps, and of
    the methods' and regularisers' work at the ends of tasks, without evaluation; no part of the
    state, as they never repeat."""

    steps: int = 0
    passes: int | None = 0
    seconds: float = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the seconds of a block."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - started

    def step(self, images: int, team: Team) -> None:
        """Add a step. images: that have passed in it on this rank."""
        self.steps += 1
        if self.passes is not None:
            self.passes += team.add(images)

    def spent(self, unit: str, team: Team) -> float:
        """The cost in steps, passes or seconds, the same number on all ranks."""
        if unit == "seconds":
            return team.agree(int(1000 * self.seconds))[0] / 1000  # rounded, it could end early
        return float((self.steps if unit == "steps" else self.passes) or 0)
