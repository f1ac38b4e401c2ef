"""The forms of LiDER: sets of options by name, `--lider-form released`. No torch needed.

A form is a layer of values, below the layer that names it: over earlier layers, a preset's for
example, and below options that are given beside it. The configuration then holds the values and not
the name. All forms set the same options of LiDER, so that nothing is left of an earlier form.

paper: Eqs. 7 to 9 as printed, with learned targets, on the passes that the method makes anyway.
released: the authors' code, without its mistakes (docs/methods/lider.md lists both).
tuned: the best that was found here, with its own α and β; the others leave these to the user.
"""

from __future__ import annotations

from typing import Any

from ..errors import unknown

Tree = dict[str, Any]

TUNED_ALPHA, TUNED_BETA = 0.0, 1.0
"""The weights of the form tuned: the 0-term alone, at the best of four strengths on held-out
training images (ER-ACE, learning rate 0.3, CIFAR-100, scale cpu: benchmarks/lider_gain.json)."""

PAPER: Tree = {
    "estimator": "spatial",
    "reading": "singular",
    "weights": "paper",
    "learn_targets": True,
    "iterations": 10,
    "tol": 1e-6,
    "on": "replay",
    "rows": "all",
    "draw": "reuse",
    "order": "c-0",
    "control": False,
    "calibrate": "start",
    "calibration_rows": 256,
    "calibration_augmented": False,
    "calibration_data": "fit",
}
RELEASED = PAPER | {
    "weights": "swapped",
    "learn_targets": False,
    "tol": 0.0,
    "draw": "fresh",
    "order": "0-c",
    "calibration_rows": None,
    "calibration_augmented": True,
    "calibration_data": "task",
}
FORMS: dict[str, Tree] = {
    "paper": PAPER,
    "released": RELEASED,
    "tuned": PAPER | {"alpha": TUNED_ALPHA, "beta": TUNED_BETA},
}
RELEASED_WITH: dict[str, Tree] = {
    "icarl": {"regularizers": {"lider": {"draw": "reuse", "on": "both"}}},
    "gdumb": {
        "method": {"cutmix_probability": 1.0, "optimizer_per": "epoch", "collect": "every-epoch"},
        "memory": {"policy": "reservoir"},
    },
}
"""The released code of single methods, where it differs from the others."""


def form_layer(form: str, method: str) -> Tree:
    """The values of a form, for a method.

    >>> form_layer("tuned", "er-ace")["regularizers"]["lider"]["draw"]
    'reuse'
    >>> form_layer("released", "icarl")["training"]
    {'drop_last': True}
    """
    if form not in FORMS:
        raise unknown("form of LiDER", form, FORMS)
    more = RELEASED_WITH.get(method, {}) if form == "released" else {}
    of_lider = FORMS[form] | more.get("regularizers", {}).get("lider", {})
    layer = {**more, "regularizers": {"lider": of_lider}}
    if "method" in more:
        layer["method"] = {"name": method, **more["method"]}
    return layer | ({"training": {"drop_last": True}} if form == "released" else {})
