"""A clock inside LiDER, for machines where step times scatter more than LiDER takes.

There, comparing steps with and without LiDER needs hundreds of rounds. This clock compares a step
with itself: it runs inside LiDER (copies of the maps, estimates, their gradients) and around the
whole step, so that a slow machine slows both. It misses the additions by autograd where gradients
meet, one per map.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from liderlab.functional.coupling import BatchCoupling, SpatialCoupling
from liderlab.regularizers.feature_recorder import FeatureRecorder
from liderlab.regularizers.lider import LiDER

Clock = Callable[[], float]

_inside = 0.0  # seconds inside LiDER so far
_clock: Clock = time.perf_counter
_installed = False


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step: inside LiDER, and in the rest."""

    lider: float
    rest: float

    @property
    def share(self) -> float:
        return self.lider / self.rest


def time_steps(
    step: Callable[[], object], steps: int, clock: Clock = time.perf_counter
) -> list[StepTime]:
    """Times of `steps` steps, after one that is not counted. On a busy machine one thread's share
    is steadier by `time.process_time`."""
    global _clock
    _clock = clock
    _install()
    step()
    found = []
    for _ in range(steps):
        start, before = clock(), _inside
        step()
        whole, inside = clock() - start, _inside - before
        found.append(StepTime(inside, whole - inside))
    return found


def _install() -> None:
    global _installed
    if not _installed:
        LiDER._take = _clocked(LiDER._take)
        LiDER._weighted_terms = _clocked(LiDER._weighted_terms)
        FeatureRecorder.record = _clocked(FeatureRecorder.record)
        for coupling in (SpatialCoupling, BatchCoupling):
            coupling.backward = staticmethod(_clocked(coupling.backward))
        _installed = True


def _clocked(function: Callable) -> Callable:
    def timed(*args, **kwargs):
        global _inside
        start = _clock()
        result = function(*args, **kwargs)
        _inside += _clock() - start
        return result

    return timed
