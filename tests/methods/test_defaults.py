"""The methods' default options. A change of one changes everybody's results."""

import inspect
from typing import Any

import pytest

from liderlab.methods import METHODS

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


def test_every_method_is_here() -> None:
    assert sorted(DEFAULTS) == sorted(METHODS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str) -> None:
    make = METHODS.load(name)
    make()
    parameters = inspect.signature(make).parameters.values()
    found = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    assert found == DEFAULTS[name]
