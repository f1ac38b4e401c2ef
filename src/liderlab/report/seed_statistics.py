"""What seeds say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean over `n` values; half: half the width of its 95 % interval, None from one value."""

    mean: float
    half: float | None
    n: int


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Interval | None:
    """ours − theirs over the seeds that both have, as Student's t sees it:

        d̄ ± t(0.975, n − 1) · s_d / √n

    Without a common seed: the difference of the means, n = 0, no interval.

    >>> d = paired_difference({0: 72.0, 1: 75.0, 2: 73.0}, {0: 71.0, 1: 72.0, 2: 71.0})
    >>> f"{d.mean:.2f} ± {d.half:.2f}"
    '2.00 ± 2.48'
    """
    if not ours or not theirs:
        return None
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        return Interval(fmean(ours.values()) - fmean(theirs.values()), None, 0)
    return mean_interval([ours[seed] - theirs[seed] for seed in seeds])


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean, and its interval if there are two values or more."""
    n = len(values)
    if n < 2:
        return Interval(fmean(values), None, n)
    from scipy.special import stdtrit

    quantile = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2))
    return Interval(fmean(values), quantile * stdev(values) / n**0.5, n)
