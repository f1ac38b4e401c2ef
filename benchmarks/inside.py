"""A clock inside LiDER, for steps that scatter more than it costs.

Comparing steps with LiDER and without needs hundreds of rounds then. Here a step is compared with
itself: the clock runs inside LiDER (copies of the maps, estimates, their gradients) and around the
whole step, and whatever slows the machine slows both. Left out is what autograd adds up where
gradients meet (one addition per map).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from liderlab.functional.coupling import BatchCoupling, SpatialCoupling
from liderlab.regularizers.lider import LiDER
from liderlab.regularizers.recorder import Recorder

_inside = 0.0  # seconds within LiDER, so far
_installed = False


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step: within LiDER, and all else."""

    lider: float
    rest: float

    @property
    def share(self) -> float:
        return self.lider / self.rest


def time_steps(step: Callable[[], object], steps: int) -> list[StepTime]:
    """So many steps, after one that does not count."""
    _install()
    step()
    found = []
    for _ in range(steps):
        start, before = time.perf_counter(), _inside
        step()
        whole, own = time.perf_counter() - start, _inside - before
        found.append(StepTime(own, whole - own))
    return found


def _install() -> None:
    global _installed
    if not _installed:
        LiDER._take = _clocked(LiDER._take)
        LiDER._weighted_terms = _clocked(LiDER._weighted_terms)
        Recorder.record = _clocked(Recorder.record)
        for coupling in (SpatialCoupling, BatchCoupling):
            coupling.backward = staticmethod(_clocked(coupling.backward))
        _installed = True


def _clocked(function: Callable) -> Callable:
    def timed(*args, **kwargs):
        global _inside
        start = time.perf_counter()
        result = function(*args, **kwargs)
        _inside += time.perf_counter() - start
        return result

    return timed
