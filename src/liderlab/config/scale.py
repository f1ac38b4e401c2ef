"""Smaller versions of an experiment, for smaller machines; the configuration lists every change.

A scale is applied after preset, file and options, and only ever lowers a value. A preset may have a
smaller network, with weights of its own, for a scale. No torch needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .presets import preset
from .weight_backbone import backbone_of

Tree = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """Upper limits of epochs per task, images per class, and passes of a fit on the memory (None:
    no limit), and a divisor of the network's width.

    from_scratch: leave out pre-trained weights. A network that keeps them keeps its width, unless
    its preset has a smaller one for the scale, and pretrained_train_per_class limits its training
    images instead.
    """

    summary: str
    epochs: int | None = None
    train_per_class: int | None = None
    pretrained_train_per_class: int | None = None
    test_per_class: int | None = None
    fit_epochs: int | None = None
    divide_width: int = 1
    from_scratch: bool = False


SCALES = {
    "smoke": Scale(
        "does it run: one epoch, eight images per class, an eighth of the width",
        epochs=1,
        train_per_class=8,
        test_per_class=4,
        fit_epochs=2,
        divide_width=8,
        from_scratch=True,
    ),
    "cpu": Scale(
        "a quarter of an hour on one core for CIFAR-100: four epochs, an eighth of the width",
        epochs=4,
        pretrained_train_per_class=50,
        fit_epochs=50,
        divide_width=8,
    ),
    "paper": Scale("as it is"),
}


def shrink(config: Mapping[str, Any]) -> Tree:
    """A complete configuration at the scale that it names, with the changes listed beside the name.

    A configuration that lists its changes already is returned as it is.

    >>> tree = {"scale": {"name": "smoke"}, "training": {"epochs": 50, "milestones": [35]}}
    >>> tree |= {"benchmark": {}, "backbone": {"width": 64}, "method": {}, "pretrained": None}
    >>> small = shrink(tree)
    >>> small["backbone"], small["scale"]["changes"]["training.epochs"]
    ({'width': 8}, {'from': 50, 'to': 1})
    """
    scale = config.get("scale")
    if scale is None or scale.get("changes") is not None:
        return dict(config)
    tree, changes = dict(config), {}
    for field, new in _smaller(config, scale["name"]).items():
        section, _, key = field.partition(".")
        if not key:
            tree[section] = new
        elif new is None:
            tree[section] = {k: value for k, value in tree[section].items() if k != key}
        else:
            tree[section] = {**tree[section], key: new}
        changes[field] = {"from": _value(config, field), "to": new}
    return tree | {"scale": {"name": scale["name"], "changes": changes}}


def _smaller(config: Mapping[str, Any], name: str) -> Tree:
    """New values by dotted name; None drops an option."""
    scale, planned = SCALES[name], _of_preset(config, name)
    new = {field: low for field, low in planned.items() if not _as_low(_value(config, field), low)}
    own_network = bool(new)

    def cap(section: str, key: str, most: int | None) -> None:
        value = config[section].get(key)
        if most is not None and (value is None or value > most):
            new[f"{section}.{key}"] = most

    cap("training", "epochs", scale.epochs)
    keeps_width = config["pretrained"] and not scale.from_scratch
    images = scale.pretrained_train_per_class if keeps_width else scale.train_per_class
    cap("benchmark", "train_per_class", None if own_network else images)
    cap("benchmark", "test_per_class", scale.test_per_class)
    if "fit_epochs" in config["method"]:
        cap("method", "fit_epochs", scale.fit_epochs)
    if "training.epochs" in new:
        changed = shortened(config["training"], new["training.epochs"])
        new |= {f"training.{field}": value for field, value in changed.items()}
    if config["pretrained"] and scale.from_scratch:
        new["pretrained"] = None
    width = config["backbone"].get("width")
    if width and keeps_width and not own_network and name != "paper":
        new |= _width_of_weights(config)
    if width and scale.divide_width > 1 and not keeps_width and "backbone.width" not in planned:
        new["backbone.width"] = max(1, width // scale.divide_width)
    return new


def shortened(training: Mapping[str, Any], epochs: int) -> Tree:
    """The fields of a training of so many epochs: milestones and warm-up keep their shares of it.

    >>> shortened({"epochs": 50, "milestones": [35, 45]}, 4)
    {'epochs': 4, 'milestones': [3]}
    """
    before: int = training["epochs"]
    changed: Tree = {"epochs": epochs}
    if milestones := training["milestones"]:
        moved = {round(epochs * milestone / before) for milestone in milestones}
        changed["milestones"] = sorted(m for m in moved if 0 < m < epochs)
    if (schedule := training.get("schedule", {})).get("warmup"):
        changed["schedule"] = {**schedule, "warmup": schedule["warmup"] * epochs / before}
    return changed


def _of_preset(config: Mapping[str, Any], scale: str) -> Tree:
    """Values that the preset has for this scale: its smaller network, images and weights. None if
    the user has chosen another network or other weights."""
    if not config.get("preset"):
        return {}
    chosen = preset(config["preset"])
    given = (config["backbone"].get("name"), config["pretrained"])
    if given != (chosen.config["backbone"]["name"], chosen.config["pretrained"]):
        return {}
    return chosen.scales.get(scale, {})


def _width_of_weights(config: Mapping[str, Any]) -> Tree:
    """The width of the weights' own network, if it is a narrower one of the same kind."""
    own, here = backbone_of(config["pretrained"]), config["backbone"]
    if (
        own is None
        or own["name"] != here["name"]
        or own.get("width", here["width"]) >= here["width"]
    ):
        return {}
    return {"backbone.width": own["width"]}


def _value(config: Mapping[str, Any], field: str) -> Any:
    section, _, key = field.partition(".")
    return config[section].get(key) if key else config[section]


def _as_low(old: Any, new: Any) -> bool:
    return isinstance(old, int | float) and isinstance(new, int | float) and old <= new
