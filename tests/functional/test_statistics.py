"""Means, standard deviations and confidence intervals, against scipy."""

import numpy as np
import pytest
from scipy import stats

from liderlab.functional.statistics import (
    mean_interval,
    paired_difference,
    summarise,
    t_quantile,
)


@pytest.mark.parametrize("n", [2, 3, 10, 200])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_paired_difference_is_the_paired_t_test(n: int, confidence: float) -> None:
    random = np.random.default_rng(n)
    a, b = random.normal(1, 2, n), random.normal(0, 3, n)
    by_seed = (dict(enumerate(values.tolist())) for values in (a, b))
    ours = paired_difference(*by_seed, confidence)
    theirs = stats.ttest_rel(a, b)
    interval = theirs.confidence_interval(confidence)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high))
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.mean == pytest.approx(np.mean(a - b))
    assert ours.n == n


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    draws = random.normal(0.3, 1, (2000, 4))
    found = [mean_interval(row.tolist()) for row in draws]
    inside = sum(d.low < 0.3 < d.high for d in found if d.low is not None and d.high is not None)
    assert 0.935 < inside / 2000 < 0.965


def test_only_seeds_that_both_have_are_paired() -> None:
    found = paired_difference(
        {0: 5.0, 1: 7.0, 2: None, 9: 100.0}, {0: 4.0, 1: 4.0, 2: 1.0, 8: -9.0}
    )
    assert found is not None
    assert (found.mean, found.n) == (2.0, 2)
    assert paired_difference({0: 5.0}, {1: 4.0}) is None
    assert paired_difference({}, {1: 4.0}) is None


def test_one_seed_has_no_spread() -> None:
    assert summarise([70.0]).std is None
    one = mean_interval([1.0])
    assert (one.mean, one.half, one.low, one.high, one.p) == (1.0, None, None, None, None)
    assert one.n == 1
    assert summarise([]) is None


def test_values_that_do_not_vary() -> None:
    same = mean_interval([1.0, 1.0])
    assert (same.low, same.high, same.p) == (1.0, 1.0, 0.0)
    assert mean_interval([0.0, 0.0]).p == 1.0


def test_summary() -> None:
    values = [1.0, 4.0, 9.0]
    found = summarise(values)
    assert (found.mean, found.std) == pytest.approx((np.mean(values), np.std(values, ddof=1)))


def test_quantile() -> None:
    assert t_quantile(0.975, 7) == pytest.approx(stats.t.ppf(0.975, 7))


def test_a_confidence_in_percent_is_refused() -> None:
    with pytest.raises(ValueError, match="confidence"):
        mean_interval([1.0], 95)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 1.5])
def test_a_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        mean_interval([1.0, 2.0], confidence)
