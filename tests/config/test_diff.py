"""The message about two configurations that differ."""

from liderlab.config.diff import differences
from liderlab.config.merging import make_config
from liderlab.runs.build import completed


def between(before: dict[str, object], now: dict[str, object]) -> dict[str, str]:
    return differences(*(completed(make_config(tree)).model_dump() for tree in (before, now)))


def test_nothing_differs_from_itself() -> None:
    assert between({"regularizers": {"lider": {}}}, {"regularizers": {"lider": {}}}) == {}


def test_a_regulariser_that_came_or_went_is_one_difference() -> None:
    on, off = (
        {"regularizers": {"lider": {"alpha": 0.2}, "oewc": {}}},
        {"regularizers": {"oewc": {}}},
    )
    assert between(on, off) == {"regularizers.lider": "was on, now off"}
    assert between(off, on) == {"regularizers.lider": "was off, now on"}


def test_its_options_are_differences_of_their_own() -> None:
    one, other = ({"regularizers": {"lider": {"alpha": alpha}}} for alpha in (0.1, 0.2))
    assert between(one, other) == {"regularizers.lider.alpha": "was 0.1, now 0.2"}


def test_another_method_is_one_difference() -> None:
    assert between({"method": "er"}, {"method": "der++"}) == {
        "method.name": "was 'er', now 'der++'"
    }


def test_sections_and_values() -> None:
    changed = between({"seed": 1}, {"training": {"lr": 0.2}})
    assert changed == {"seed": "was 1, now 0", "training.lr": "was 0.1, now 0.2"}
