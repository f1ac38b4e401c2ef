import math

from hypothesis import given
from hypothesis import strategies as st

from liderlab.report.page.curves import downsample, logged_curves

VALUES = st.lists(st.floats(-1e6, 1e6) | st.just(math.nan) | st.none(), max_size=300)


@given(values=VALUES, points=st.integers(1, 60))
def test_a_downsampled_curve_keeps_extremes_end_and_length(
    values: list[float | None], points: int
) -> None:
    steps = list(range(1, len(values) + 1))
    curve = downsample(steps, values, points)
    assert len(curve["x"]) == len(curve["y"]) <= points
    assert curve["x"][-1:] == steps[-1:]
    finite = [v for v in values if v is not None and math.isfinite(v)]
    drawn = [v for v in curve["y"] if v is not None]
    assert bool(finite) == bool(drawn)
    if "high" in curve and finite:
        high = max(v for v in curve["high"] if v is not None)
        low = min(v for v in curve["low"] if v is not None)
        assert math.isclose(high, max(finite), rel_tol=1e-3)
        assert math.isclose(low, min(finite), rel_tol=1e-3)


def test_a_term_that_starts_later_has_a_curve_of_its_own() -> None:
    lines = [
        {"kind": "step", "step": 1, "terms": {"stream": 2.0}},
        {"kind": "step", "step": 2, "terms": {"stream": 1.0, "replay": math.inf}},
    ]
    assert logged_curves(lines, "terms", 10) == {
        "stream": {"x": [1, 2], "y": [2.0, 1.0]},
        "replay": {"x": [2], "y": [None]},
    }
