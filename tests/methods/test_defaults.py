"""The methods' options: defaults, whose change would change everybody's results, and ranges."""

from typing import Any

import pytest

from liderlab.methods import METHODS
from option_checks import check_range, defaults_of

DEFAULTS: dict[str, dict[str, Any]] = {
    "finetune": {},
    "joint": {},
    "er": {},
    "er-ace": {},
    "der": {"alpha": 0.3},
    "der++": {"alpha": 0.1, "beta": 0.5},
    "x-der-rpc": {"alpha": 0.1, "beta": 0.5, "gamma": 0.85, "eta": 0.1, "margin": 0.3},
    "icarl": {"l2": 1e-5, "normalize": True},
    "gdumb": {
        "fit_epochs": 250,
        "lr_max": 0.05,
        "lr_min": 0.0005,
        "weight_decay": 1e-6,
        "cutmix_alpha": 1.0,
        "cutmix_probability": 0.5,
        "fit_after": "stream",
        "momentum": 0.9,
        "optimizer_per": "fit",
        "collect": "once",
    },
    "a-gem": {},
    "lwf": {"weight": 1.0, "temperature": 2.0},
    "ncm": {"normalize": True},
    "linear-probe": {},
    "gmed": {"alpha": 0.1, "beta": 0.01, "gamma": 1.0},
}


RANGES = [
    ("der", "alpha", "[0.0, inf)"),
    ("der++", "alpha", "[0.0, inf)"),
    ("der++", "beta", "[0.0, inf)"),
    ("x-der-rpc", "alpha", "[0.0, inf)"),
    ("x-der-rpc", "beta", "[0.0, inf)"),
    ("x-der-rpc", "gamma", "[0.0, 1.0]"),
    ("x-der-rpc", "eta", "[0.0, inf)"),
    ("x-der-rpc", "margin", "[0.0, inf)"),
    ("icarl", "l2", "[0.0, inf)"),
    ("gdumb", "fit_epochs", "[1, inf)"),
    ("gdumb", "lr_min", "[0.0, 0.05]"),
    ("gdumb", "weight_decay", "[0.0, 1e38]"),
    ("gdumb", "cutmix_alpha", "(0.0, 1e38]"),
    ("gdumb", "cutmix_probability", "[0.0, 1.0]"),
    ("gdumb", "momentum", "[0.0, 1.0)"),
    ("lwf", "weight", "[0.0, inf)"),
    ("lwf", "temperature", "(0.0, 1e38]"),
    ("gmed", "alpha", "[0.0, inf)"),
    ("gmed", "beta", "[0.0, inf)"),
    ("gmed", "gamma", "[0.0, 1.0]"),
]


def test_every_method_is_here() -> None:
    assert sorted(DEFAULTS) == sorted(METHODS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str) -> None:
    assert defaults_of(METHODS.load(name)) == DEFAULTS[name]


@pytest.mark.parametrize(("name", "option", "allowed"), RANGES)
def test_ranges(name: str, option: str, allowed: str) -> None:
    check_range(METHODS.load(name), option, allowed)


def test_the_range_of_the_largest_rate() -> None:
    check_range(METHODS.load("gdumb"), "lr_max", "(0.0, 1e38]", lr_min=0.0)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_method_without_memory_has_no_policy(name: str) -> None:
    facts = METHODS.facts(name)
    assert (facts["policy"] is None) == (not facts["rehearsal"])
