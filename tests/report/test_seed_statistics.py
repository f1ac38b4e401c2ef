import pytest
from scipy import stats

from liderlab.report.seed_statistics import mean_interval, paired_difference


def test_the_interval_is_that_of_the_paired_t_test() -> None:
    a, b = [71.0, 72.5, 71.1, 70.2], [72.0, 75.0, 73.0, 70.0]
    found = paired_difference(dict(enumerate(b)), dict(enumerate(a)))
    low, high = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert found is not None
    assert found.half is not None
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((low, high))
    assert found.n == 4


def test_only_common_seeds_count() -> None:
    found = paired_difference({0: 5.0, 1: 7.0, 9: 100.0}, {0: 4.0, 1: 4.0, 8: -100.0})
    assert found is not None
    assert (found.mean, found.n) == (2.0, 2)


def test_without_seeds_there_is_less_to_say() -> None:
    apart = paired_difference({0: 5.0}, {1: 4.0})
    assert apart is not None
    assert (apart.mean, apart.half, apart.n) == (1.0, None, 0)
    assert paired_difference({}, {1: 4.0}) is None
    assert mean_interval([3.0]).half is None
