"""The speed of a run and its time left, the same in every display."""

from __future__ import annotations

import time
from collections import deque

from ..training.loop import Loop

MARKS = 100  # moments kept of one task


class Pace:
    """Steps per second over as many steps as one task has, evaluation included.

    The average from the start on would be too high: the first task has nothing to replay.
    """

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._marks: deque[tuple[int, float]] = deque()  # steps and times
        self.steps, self.planned, self._now = 0, 0, 0.0

    def update(self, loop: Loop) -> None:
        """To be called before the first step, and after every event."""
        self.steps, self._now = loop.steps, time.monotonic()
        known = 0 if loop.budget else self.planned  # a budget's steps are judged by those so far
        self.planned = max(known or loop.planned_steps(), loop.steps)
        window = self.planned / self._tasks
        if self._marks and self._marks[-1][0] == loop.steps:
            self._marks.pop()  # an evaluation belongs to the task before it
        if not self._marks or loop.steps - self._marks[-1][0] >= window / MARKS:
            self._marks.append((loop.steps, self._now))
        while len(self._marks) > 1 and self._marks[1][0] <= loop.steps - window:
            self._marks.popleft()

    @property
    def done(self) -> float:
        """From 0 to 1."""
        return self.steps / self.planned if self.planned else 0.0

    @property
    def speed(self) -> float | None:
        """Steps per second; None before the first one."""
        if not self._marks:
            return None
        steps, at = self._marks[0]
        return (self.steps - steps) / (self._now - at) if self.steps > steps else None

    @property
    def left(self) -> float | None:
        """Seconds to the end; None before the first step."""
        return (self.planned - self.steps) / self.speed if self.speed else None
