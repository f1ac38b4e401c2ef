"""Timing in turns, and ratios of the times."""

import pytest

from liderlab.analysis import interleaved_timing
from liderlab.analysis.interleaved_timing import Ratio, time_in_turns


def test_actions_take_turns_and_the_first_round_does_not_count(monkeypatch) -> None:
    now, calls = [0.0], []
    monkeypatch.setitem(interleaved_timing.CLOCKS, "wall", lambda: now[0])

    def action(name: str, *seconds: float):
        left = iter(seconds)

        def run() -> None:
            calls.append(name)
            now[0] += next(left)

        return run

    times = time_in_turns({"a": action("a", 9, 1, 2), "b": action("b", 9, 3, 4)}, rounds=2)
    assert times == {"a": [1, 2], "b": [3, 4]}
    assert "".join(calls) == "baabba"


def test_cpu_clock_does_not_count_waiting() -> None:
    import time

    times = time_in_turns({"waits": lambda: time.sleep(0.2)}, rounds=1, clock="cpu")
    assert times["waits"][0] < 0.1


def test_ratio_is_the_median_of_the_rounds() -> None:
    # the third round was slow for both, the fourth for one of them
    ratio = Ratio.of([1.1, 1.3, 12.0, 1.2], [1.0, 1.0, 10.0, 5.0])
    assert ratio.value == pytest.approx(1.15)
    assert 0.24 < ratio.low < ratio.value < ratio.high < 1.3
    assert Ratio.of([3.0], [2.0]) == Ratio(1.5, 1.5, 1.5)
