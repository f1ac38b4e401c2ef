"""What a few seeds say: means, spreads, and intervals of paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation over n values; std is None for one value."""

    mean: float
    std: float | None
    n: int


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences with its confidence interval and two-sided p-value.

    low, high and p are None where they cannot be known: with one pair.
    """

    mean: float
    low: float | None
    high: float | None
    p: float | None
    n: int


def summarise(values: Sequence[float]) -> Summary | None:
    """x̄ = Σ xᵢ / n,  s² = Σ (xᵢ − x̄)² / (n − 1); None for no values.

    >>> summarise([70.0, 72.0])
    Summary(mean=71.0, std=1.4142135623730951, n=2)
    """
    if not values:
        return None
    return Summary(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


def paired_difference(
    treated: Sequence[float], plain: Sequence[float], confidence: float = 0.95
) -> Difference:
    """Student's paired interval: d̄ ± t · s_d / √n, dᵢ = treatedᵢ − plainᵢ, with t the quantile
    (1 + confidence)/2 at n − 1 degrees of freedom.

    The i-th values of both must come from the same seed.

    >>> difference = paired_difference([71.0, 73.0, 72.0], [70.0, 71.0, 72.0])
    >>> round(difference.mean, 2), round(difference.low, 2), round(difference.high, 2)
    (1.0, -1.48, 3.48)
    """
    if len(treated) != len(plain) or not treated:
        raise ValueError(
            f"Expected as many values on both sides, but got {len(treated)} and {len(plain)}."
        )
    if not 0 < confidence < 1:
        raise ValueError(f"Expected a confidence between 0 and 1, but got {confidence}.")
    differences = [a - b for a, b in zip(treated, plain, strict=True)]
    n, mean = len(differences), fmean(differences)
    if n == 1:
        return Difference(mean, None, None, None, 1)
    error = stdev(differences) / math.sqrt(n)
    reach = t_quantile((1 + confidence) / 2, n - 1) * error
    return Difference(mean, mean - reach, mean + reach, _p_value(mean, error, n - 1), n)


def t_quantile(probability: float, freedom: int) -> float:
    """The value below which Student's t falls with that probability.

    >>> round(t_quantile(0.975, 2), 4)
    4.3027
    """
    from scipy.special import stdtrit  # loaded when needed: listing studies needs no scipy

    return float(stdtrit(freedom, probability))


def _p_value(mean: float, error: float, freedom: int) -> float:
    """Chance of a |t| as large if there were no difference; without spread it is 0 or 1."""
    from scipy.special import stdtr

    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(mean / error)))
