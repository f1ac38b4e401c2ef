"""Memory and speed of what runs in a process of its own."""

import pytest

from liderlab.analysis import measure_in_child, peak_memory, throughput

MEGABYTE = 10**6


def test_a_childs_peak_does_not_count_its_parents_memory():
    ballast = b"x" * (300 * MEGABYTE)
    small = measure_in_child(eval, "1 + 1")
    large = measure_in_child(eval, f"len(b'x' * {150 * MEGABYTE})")
    assert (small.value, large.value) == (2, 150 * MEGABYTE)
    assert large.peak_bytes - large.start_bytes > 140 * MEGABYTE
    assert small.peak_bytes - small.start_bytes < 50 * MEGABYTE
    assert peak_memory() > len(ballast)
    assert large.seconds > 0


def test_a_childs_failure_is_raised():
    with pytest.raises(RuntimeError, match="ZeroDivisionError: division by zero"):
        measure_in_child(eval, "1 / 0")
    with pytest.raises(RuntimeError, match="exit code 7"):
        measure_in_child(eval, "__import__('os')._exit(7)")


def test_throughput_counts_steps_and_samples():
    calls = []
    result = throughput(lambda: calls.append(1), samples=8, warmup=2, repeats=5)
    assert len(calls) == 7
    assert len(result.seconds) == 5
    assert result.samples_per_second == pytest.approx(8 / sorted(result.seconds)[2])
    with pytest.raises(ValueError, match="repeats and samples"):
        throughput(lambda: None, samples=0)
