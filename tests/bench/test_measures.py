"""What is claimed, and what is reported of it."""

import pytest

from liderlab.bench.measures import MEASURES, Claim, machine, measure
from liderlab.errors import UserError


@pytest.mark.parametrize(
    ("claim", "ratio", "met"),
    [
        (Claim("a", "b", most=1.05), 1.05, True),
        (Claim("a", "b", most=1.05), 1.06, False),
        (Claim("a", "b", least=1.8), 1.7, False),
        (Claim("a", "b", least=1.8), 2.0, True),
        (Claim("a", "b"), 9.0, None),
    ],
)
def test_claims(claim, ratio, met) -> None:
    assert claim.met(ratio) is met


@pytest.mark.parametrize("name", ["resnet18-64", "curvature", "herding"])
def test_a_measure_reports_all_that_it_claims(name) -> None:
    found = measure(name, quick=True)
    claims = MEASURES[name].claims
    assert [(row["above"], row["below"]) for row in found["ratios"]] == [
        (claim.above, claim.below) for claim in claims
    ]
    for row in found["ratios"]:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["met"] is None  # a quick look proves nothing
        assert found["milliseconds"][row["above"]] > 0


def test_every_claim_is_about_contestants_of_its_race() -> None:
    for chosen in MEASURES.values():
        names = {side for claim in chosen.claims for side in (claim.above, claim.below)}
        assert names
        if "er-ace" in chosen.summary:
            assert names <= {"without", "spatial", "batch", "jacobian", "fresh", "bare"}


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'herding'"):
        measure("herdng")


def test_the_machine_is_named() -> None:
    where = machine(1)
    assert where["threads"] == 1
    assert where["processor"]
    assert where["torch"]
