"""The measures of `lider bench` and the limits of their ratios."""

import pytest

from liderlab.bench.measures import MEASURES, RatioLimit, machine, measure
from liderlab.errors import UserError
from liderlab.regularizers import REGULARIZERS


@pytest.mark.parametrize(
    ("limit", "ratio", "met"),
    [
        (RatioLimit("a", "b", most=1.05), 1.05, True),
        (RatioLimit("a", "b", most=1.05), 1.06, False),
        (RatioLimit("a", "b", least=1.8), 1.7, False),
        (RatioLimit("a", "b", least=1.8), 2.0, True),
        (RatioLimit("a", "b"), 9.0, None),
    ],
)
def test_limits(limit, ratio, met) -> None:
    assert limit.met(ratio) is met


@pytest.mark.parametrize("name", ["resnet18-64", "curvature", "herding"])
def test_a_measure_reports_every_ratio(name) -> None:
    found = measure(name, quick=True)
    limits = MEASURES[name].limits
    assert [(row["above"], row["below"]) for row in found["ratios"]] == [
        (limit.above, limit.below) for limit in limits
    ]
    for row in found["ratios"]:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["met"] is None  # quick times prove nothing
        assert found["milliseconds"][row["above"]] > 0


def test_every_limit_is_about_actions_of_its_measure() -> None:
    for chosen in MEASURES.values():
        names = {side for limit in chosen.limits for side in (limit.above, limit.below)}
        assert names
        if "er-ace" in chosen.summary:
            own = {"without", "spatial", "batch", "jacobian", "fresh", "bare"}
            assert names <= own | set(REGULARIZERS)


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'herding'"):
        measure("herdng")


def test_the_machine_is_named() -> None:
    where = machine(1)
    assert where["threads"] == 1
    assert where["processor"]
    assert where["torch"]
