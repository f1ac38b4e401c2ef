"""Timing in turns: actions alternate, so that a slow moment of the machine slows all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import quantiles
from typing import Literal

Action = Callable[[], object]
Clock = Literal["wall", "cpu"]
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def time_in_turns(
    actions: Mapping[str, Action], rounds: int, clock: Clock = "wall"
) -> dict[str, list[float]]:
    """Seconds of each action in each round, after one round that is not counted.

    clock: "cpu" counts the processor time of all threads, which other processes disturb least.

    >>> times = time_in_turns({"a": lambda: None, "b": lambda: None}, rounds=3)
    >>> {name: len(seconds) for name, seconds in times.items()}
    {'a': 3, 'b': 3}
    """
    now, names = CLOCKS[clock], list(actions)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names if number % 2 else names[::-1]:  # no action is always the first
            start = now()
            actions[name]()
            times[name].append(now() - start)
    return {name: seconds[1:] for name, seconds in times.items()}


@dataclass(frozen=True)
class Ratio:
    """The median of the rounds' ratios, and their quartiles."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, above: list[float], below: list[float]) -> Ratio:
        """
        >>> Ratio.of([2.0, 2.2, 9.0], [1.0, 1.0, 3.0])
        Ratio(value=2.2, low=2.1, high=2.6)
        """
        ratios = [a / b for a, b in zip(above, below, strict=True)]
        if len(ratios) == 1:
            return cls(ratios[0], ratios[0], ratios[0])
        low, middle, high = quantiles(ratios, n=4, method="inclusive")
        return cls(middle, low, high)
