"""What a search may choose from.

training.lr: [0.01, 0.03, 0.1]                                   # one of these
regularizers.lider.alpha: {low: 0.001, high: 1.0, log: true}     # anything between
training.epochs: {low: 1, high: 5}                               # whole numbers
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ..config.diff import flat
from ..config.merging import make_config, merge
from ..config.presets import presets
from ..config.schema import RunConfig
from ..errors import UserError, unknown

Tree = dict[str, Any]
RANGE = ("low", "high", "log")
LARGEST = sys.float_info.max / 2  # samplers take the difference of two bounds
SEARCHED = ("training.lr", "method.", "regularizers.lider.")


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[bool | int | float | str | None, ...]

    @property
    def samples(self) -> tuple[Any, ...]:
        """What is tried out before a search begins."""
        return self.values


@dataclass(frozen=True)
class Range:
    """A number between two others; whole if they are. log: evenly spread in its logarithm."""

    low: float
    high: float
    log: bool = False

    @property
    def samples(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


Space = dict[str, Choice | Range]


def read_space(tree: Mapping[str, Any]) -> Space:
    """A space from a file's values.

    >>> read_space({"training.lr": [0.1, 0.3], "memory": {"size": [50, 100]}})["memory.size"]
    Choice(values=(50, 100))
    """
    space: Space = {}
    for key, value in _leaves(tree).items():
        space[key] = _choice(key, value) if isinstance(value, list) else _range(key, value)
    if not space:
        raise UserError("the space is empty: name a field and its values, 'training.lr: [0.1, 1]'")
    return space


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Tree:
    """Sections opened up, down to the lists and ranges."""
    items: Tree = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and not set(value) & set(RANGE):
            items |= _leaves(value, f"{prefix}{key}.")
        else:
            items[f"{prefix}{key}"] = value
    return items


def _choice(key: str, values: list[Any]) -> Choice:
    if not values or not all(isinstance(v, bool | int | float | str | None) for v in values):
        raise UserError(f"{key}: expected a list of plain values, but got {values!r}")
    if len(set(map(repr, values))) < len(values):
        raise UserError(f"{key}: a value stands there twice: {values!r}")
    return Choice(tuple(values))


def _range(key: str, value: Any) -> Range:
    if not isinstance(value, Mapping):
        raise UserError(
            f"{key}: expected a list of values, or a range like {{low: 0.01, high: 1.0}}, "
            f"but got {value!r}"
        )
    for name in value:
        if name not in RANGE:
            raise unknown(f"field of {key}", str(name), RANGE)
    low: Any = value.get("low")
    high: Any = value.get("high")
    log: Any = value.get("log", False)
    numbers = all(type(v) in (int, float) for v in (low, high)) and type(log) is bool
    if not numbers or not -LARGEST <= low < high <= LARGEST or (log and low <= 0):
        raise UserError(
            f"{key}: expected finite low < high (above 0 where log), but got {dict(value)!r}"
        )
    return Range(low, high, log)


def paper_space(config: RunConfig) -> Space:
    """The values that the paper's tables print for this method, with or without LiDER.

    Every field that is not the same in all rows: learning rate, the method's own, LiDER's weights.
    """
    method, lider = config.method.name, "lider" in config.regularizers
    rows = [
        flat(preset.config)
        for preset in presets().values()
        if preset.printed and preset.method == method and preset.lider == lider
    ]
    values: dict[str, set[float]] = {}
    for row in rows:
        for key, value in row.items():
            if key.startswith(SEARCHED) and isinstance(value, int | float) and value is not True:
                values.setdefault(key, set()).add(value)
    space: Space = {k: Choice(tuple(sorted(v))) for k, v in values.items() if len(v) > 1}
    if not space:
        name = f"{method}{' + lider' if lider else ''}"
        raise UserError(f"the paper's tables have nothing to choose from for {name}: --space FILE")
    return space


def grid_size(space: Space) -> int:
    """How many combinations there are; only lists can be combined."""
    ranges = [key for key, values in space.items() if isinstance(values, Range)]
    if ranges:
        raise UserError(f"--sampler grid needs a list of values for {ranges[0]}, not a range")
    return prod(len(values.values) for values in space.values() if isinstance(values, Choice))


def with_values(base: Mapping[str, Any], values: Mapping[str, Any]) -> RunConfig:
    """The configuration with these values, by their dotted names."""
    tree = dict(base)
    for key, value in values.items():
        layer: Any = value
        for part in reversed(key.split(".")):
            layer = {part: layer}
        tree = merge(tree, layer)
    return make_config(tree)
