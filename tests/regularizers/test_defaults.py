"""The regularisers' default options. A change of one changes everybody's results."""

import inspect
from typing import Any

import pytest

from liderlab.regularizers import REGULARIZERS

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


def test_every_regularizer_is_here() -> None:
    assert sorted(DEFAULTS) == sorted(REGULARIZERS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str) -> None:
    make = REGULARIZERS.load(name)
    make()
    parameters = inspect.signature(make).parameters.values()
    found = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    assert found == DEFAULTS[name]
