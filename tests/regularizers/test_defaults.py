"""The regularisers' options: defaults, whose change would change everybody's results, ranges, and
the values that switch them off."""

from typing import Any

import pytest

from liderlab.regularizers import REGULARIZERS
from option_checks import check_range, defaults_of

DEFAULTS: dict[str, dict[str, Any]] = {
    "bfp": {"weight": 1.0, "projector_lr": 1.0},
    "c-flat": {"rho": 0.2, "weight": 0.2},
    "casper": {"weight": 0.01, "neighbors": 10, "classes": None, "gap": "paper"},
    "lider": {
        "model": None,
        "stages": None,
        "alpha": 0.1,
        "beta": 0.3,
        "estimator": "spatial",
        "reading": "singular",
        "weights": "paper",
        "learn_targets": True,
        "iterations": 10,
        "tol": 1e-6,
        "from_input": True,
        "on": "replay",
        "rows": "all",
        "draw": "reuse",
        "target_lr": 1.0,
        "order": "c-0",
        "control": False,
        "calibrate": "start",
        "rows_at_most": None,
        "calibration_rows": 256,
        "calibration_augmented": False,
        "calibration_data": "fit",
    },
    "mrfa": {"strength": 1e-4, "stages": None},
    "oewc": {"weight": 0.3, "gamma": 1.0, "samples": 1024, "fisher": "sampled"},
    "olap": {"weight": 0.1, "gamma": 1.0, "samples": 1024, "fisher": "sampled"},
    "spectral": {"weight": 0.001, "iterations": 3},
    "sam": {"rho": 0.05, "adaptive": False},
    "ssgd": {"decay": 0.9, "dropout": 0.1, "where": "features", "batch_size": None},
    "star": {"weight": 0.1, "gamma": 0.01, "steps": 1},
}


OFF: dict[str, dict[str, float]] = {
    "c-flat": {"rho": 0.0},
    "lider": {"alpha": 0.0, "beta": 0.0},
    "mrfa": {"strength": 0.0},
    "sam": {"rho": 0.0},
    "ssgd": {"decay": 1.0, "dropout": 0.0},
}
RANGES = [
    ("bfp", "weight", "[0.0, inf)"),
    ("bfp", "projector_lr", "[0.0, 1e38]"),
    ("c-flat", "rho", "[0.0, 1e38]"),
    ("c-flat", "weight", "[0.0, 1e38]"),
    ("casper", "weight", "[0.0, inf)"),
    ("casper", "neighbors", "[1, inf)"),
    ("casper", "classes", "[1, inf)"),
    ("lider", "alpha", "[0.0, inf)"),
    ("lider", "beta", "[0.0, inf)"),
    ("lider", "tol", "[0.0, inf)"),
    ("lider", "target_lr", "[0.0, 1e38]"),
    ("lider", "iterations", "[1, inf)"),
    ("lider", "calibration_rows", "[1, inf)"),
    ("lider", "rows_at_most", "[1, inf)"),
    ("mrfa", "strength", "[0.0, inf)"),
    ("oewc", "weight", "[0.0, inf)"),
    ("oewc", "gamma", "[0.0, 1.0]"),
    ("oewc", "samples", "[1, inf)"),
    ("olap", "weight", "[0.0, inf)"),
    ("olap", "gamma", "[0.0, 1.0]"),
    ("spectral", "weight", "[0.0, inf)"),
    ("spectral", "iterations", "[1, inf)"),
    ("sam", "rho", "[0.0, 1e38]"),
    ("ssgd", "decay", "(0.0, 1.0]"),
    ("ssgd", "dropout", "[0.0, 1.0)"),
    ("ssgd", "batch_size", "[2, 1000000000]"),
    ("star", "weight", "[0.0, inf)"),
    ("star", "gamma", "[0.0, 1.0]"),
    ("star", "steps", "[1, 1000]"),
]


def test_every_regularizer_is_here() -> None:
    assert sorted(DEFAULTS) == sorted(REGULARIZERS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str) -> None:
    assert defaults_of(REGULARIZERS.load(name)) == DEFAULTS[name]


@pytest.mark.parametrize(("name", "option", "allowed"), RANGES)
def test_ranges(name: str, option: str, allowed: str) -> None:
    check_range(REGULARIZERS.load(name), option, allowed)


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_values_that_switch_it_off(name: str) -> None:
    REGULARIZERS.facts(name)
    off = dict(REGULARIZERS.class_of(name).off)
    assert off == OFF.get(name, {"weight": 0.0})
    REGULARIZERS.load(name)(**off)


@pytest.mark.parametrize("name", ["sam", "c-flat"])
def test_a_radius_of_0_perturbs_nothing(name: str) -> None:
    assert not REGULARIZERS.load(name)(rho=0.0).perturbs
    assert REGULARIZERS.load(name)(rho=1e-9).perturbs
