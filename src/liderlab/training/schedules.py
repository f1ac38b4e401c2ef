"""Schedules by name: the factor of the learning rate as a function of the epoch, without state.

    factor(e) = warm(e) · shape(e),   e: epochs since the fit began

By epoch, e is the whole number of epochs passed; by step, it is exact. Warm-up of w epochs rises
linearly to 1: (e + 1) / (w + 1) by epoch, e / w by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UserError, check_numbers
from ..registry import Entry, Registry
from ..types import MultiStep

Schedule = Callable[[float], float]
By = Literal["epoch", "step"]


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 at `begin` to `minimum` at `end`.

    >>> [round(Cosine(1, 5, 0.2)(epoch), 3) for epoch in range(6)]
    [1.0, 1.0, 0.883, 0.6, 0.317, 0.2]
    """

    begin: float
    end: float
    minimum: float = 0.0

    def __call__(self, epoch: float) -> float:
        if epoch <= self.begin:
            return 1.0
        if epoch >= self.end:
            return self.minimum
        done = (epoch - self.begin) / (self.end - self.begin)
        return self.minimum + (1 - self.minimum) * (1 + math.cos(math.pi * done)) / 2


@dataclass(frozen=True)
class Timed:
    """A shape with warm-up in front, by whole epochs or by step.

    >>> [Timed(MultiStep((3,), 0.5), "epoch", 3)(epoch) for epoch in (0, 1.9, 2, 3)]
    [0.25, 0.5, 0.75, 0.5]
    """

    shape: Schedule
    by: By
    warmup: float

    def __call__(self, epoch: float) -> float:
        epoch = math.floor(epoch) if self.by == "epoch" else epoch
        if epoch >= self.warmup:
            return self.shape(epoch)
        first = 1 if self.by == "epoch" else 0  # an epoch at rate 0 would be lost
        return (epoch + first) / (self.warmup + first) * self.shape(epoch)


def multistep(
    epochs: int, milestones: Sequence[int], gamma: float, by: By = "epoch", warmup: float = 0.0
) -> Schedule:
    return Timed(MultiStep(tuple(milestones), gamma), by, _checked(warmup, epochs))


def constant(
    epochs: int, milestones: Sequence[int], gamma: float, by: By = "epoch", warmup: float = 0.0
) -> Schedule:
    return Timed(MultiStep(), by, _checked(warmup, epochs))


def cosine(
    epochs: int,
    milestones: Sequence[int],
    gamma: float,
    by: By = "epoch",
    warmup: float = 0.0,
    minimum: float = 0.0,
) -> Schedule:
    check_numbers(minimum=minimum, at_least=0, at_most=1)
    return Timed(Cosine(warmup, epochs, minimum), by, _checked(warmup, epochs))


def _checked(warmup: float, epochs: int) -> float:
    check_numbers(warmup=warmup, at_least=0)
    if warmup > epochs:
        raise UserError(
            f"a warm-up of {warmup:g} epochs is longer than the training of {epochs}: lower "
            "training.schedule.warmup or raise training.epochs"
        )
    return warmup


SCHEDULES = Registry(
    "schedule",
    {
        "multistep": Entry(multistep, "times training.gamma at each of training.milestones"),
        "constant": Entry(constant, "the same learning rate throughout"),
        "cosine": Entry(cosine, "half a cosine, down to minimum"),
    },
)


def make_schedule(
    name: str, options: Mapping[str, Any], epochs: int, milestones: Sequence[int], gamma: float
) -> Schedule:
    """The schedule of a configuration."""
    made: Schedule = SCHEDULES.load(name)(epochs, milestones, gamma, **options)
    return made
