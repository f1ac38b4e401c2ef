"""A budget of compute in place of epochs: methods of different cost, trained at the same price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from ..errors import UserError
from ..types import Task
from .cost import Cost

Unit = Literal["steps", "passes", "seconds"]


@dataclass(frozen=True)
class Share:
    """A fit's part of the budget: it trains until the run has spent `end`."""

    begin: float
    end: float
    unit: Unit = "steps"

    def epoch(self, spent: float, epochs: int) -> float:
        """The epoch of the schedule, which runs once over the share as it would over `epochs`.

        >>> Share(100, 200).epoch(150, 8)
        4.0
        """
        done = (spent - self.begin) / (self.end - self.begin)
        return epochs * min(max(done, 0.0), 1.0)


@dataclass(frozen=True)
class Budget:
    """Steps, passes or seconds of training for the whole run.

    Tasks share it by their training images. A task that the method does not train on leaves its
    share to the next one; the fits of a task have equal parts of its share.
    """

    unit: Unit
    amount: float

    def share(
        self,
        tasks: Sequence[Task],
        plan: Callable[[Task], Sequence[object]],
        now: int,
        fit: int,
        fits: int,
    ) -> Share:
        """The share of fit number `fit` of task `now`'s `fits`. plan: the fits of any task."""
        before = max((task.index for task in tasks[:now] if plan(task)), default=-1)
        sums = [0, *accumulate(len(task.train) for task in tasks)]
        begin, end = (self.amount * sums[task + 1] / sums[-1] for task in (before, now))
        each = (end - begin) / fits
        return Share(
            begin + fit * each, begin + (fit + 1) * each if fit < fits - 1 else end, self.unit
        )

    def check(self, tasks: int) -> None:
        """Refuse a budget that leaves a task without a step."""
        if self.unit != "seconds" and self.amount < tasks:
            raise UserError(
                f"a budget of {self.amount:g} {self.unit} is too small for {tasks} tasks: each "
                "needs at least one"
            )

    def planned_steps(self, cost: Cost) -> int | None:
        """Steps of the whole run, judged by those so far; None before the first."""
        if self.unit == "steps":
            return int(self.amount)
        spent = cost.passes if self.unit == "passes" else cost.seconds
        return round(cost.steps * self.amount / spent) if spent else None
