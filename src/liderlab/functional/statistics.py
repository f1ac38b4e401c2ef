"""Statistics over a few seeds: means, standard deviations, confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation of n values; std is None for one value."""

    mean: float
    std: float | None
    n: int


@dataclass(frozen=True)
class ConfidenceInterval:
    """mean ± half, and the two-sided p-value of the hypothesis that the true mean is 0.

    half and p are None for fewer than two values.
    """

    mean: float
    half: float | None
    p: float | None
    n: int

    @property
    def low(self) -> float | None:
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        return None if self.half is None else self.mean + self.half


def summarise(values: Sequence[float]) -> Summary | None:
    """x̄ = Σ xᵢ / n,  s² = Σ (xᵢ − x̄)² / (n − 1); None for no values.

    >>> summarise([70.0, 72.0])
    Summary(mean=71.0, std=1.4142135623730951, n=2)
    """
    if not values:
        return None
    return Summary(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> ConfidenceInterval:
    """Student's interval of the mean: x̄ ± t · s / √n, with t the quantile (1 + confidence)/2 at
    n − 1 degrees of freedom.

    >>> found = mean_interval([1.0, 2.0, 0.0])
    >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
    (1.0, -1.48, 3.48)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"Expected a confidence between 0 and 1, but got {confidence}.")
    n, mean = len(values), fmean(values)
    if n == 1:
        return ConfidenceInterval(mean, None, None, 1)
    error = stdev(values) / math.sqrt(n)
    half = t_quantile((1 + confidence) / 2, n - 1) * error
    return ConfidenceInterval(mean, half, _p_value(mean, error, n - 1), n)


def paired_difference(
    treated: Mapping[int, float | None],
    plain: Mapping[int, float | None],
    confidence: float = 0.95,
) -> ConfidenceInterval | None:
    """The mean of dₛ = treatedₛ − plainₛ over the seeds s that both have, with its interval.

    A value of None counts as missing. None if there is no common seed.

    >>> found = paired_difference({0: 72.0, 1: 75.0, 2: 73.0}, {0: 71.0, 1: 72.0, 2: 71.0})
    >>> f"{found.mean:.2f} ± {found.half:.2f}"
    '2.00 ± 2.48'
    """
    pairs = [(treated[seed], plain[seed]) for seed in sorted(treated.keys() & plain.keys())]
    differences = [a - b for a, b in pairs if a is not None and b is not None]
    return mean_interval(differences, confidence) if differences else None


def t_quantile(probability: float, freedom: int) -> float:
    """The value that Student's t stays below with this probability.

    >>> round(t_quantile(0.975, 2), 4)
    4.3027
    """
    from scipy.special import stdtrit  # imported here: listing studies and runs needs no scipy

    return float(stdtrit(freedom, probability))


def _p_value(mean: float, error: float, freedom: int) -> float:
    """P(|T| ≥ |mean / error|) if the true mean is 0; 0 or 1 if the values do not vary."""
    from scipy.special import stdtr

    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(mean / error)))
