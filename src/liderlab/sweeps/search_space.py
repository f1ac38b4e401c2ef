"""The values that a search may choose from.

training.lr: [0.01, 0.03, 0.1]                                   # one of these
regularizers.lider.alpha: {low: 0.001, high: 1.0, log: true}     # any number between
training.epochs: {low: 1, high: 5}                               # any whole number between
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ..config.presets import presets
from ..config.schema import RunConfig
from ..errors import UserError, unknown
from .dotted_names import dotted

RANGE = ("low", "high", "log")
LARGEST = sys.float_info.max / 2  # samplers take the difference of two bounds
SEARCHED = ("training.lr", "method.", "regularizers.lider.")


@dataclass(frozen=True)
class ValueList:
    """One of these values."""

    values: tuple[bool | int | float | str | None, ...]

    @property
    def samples(self) -> tuple[Any, ...]:
        """Values to check before a search begins."""
        return self.values


@dataclass(frozen=True)
class ValueRange:
    """A number from low to high, whole if both are. log: uniform in its logarithm."""

    low: float
    high: float
    log: bool = False

    @property
    def samples(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


Space = dict[str, ValueList | ValueRange]


def read_space(tree: Mapping[str, Any]) -> Space:
    """The space that a file describes.

    >>> read_space({"training.lr": [0.1, 0.3], "memory": {"size": [50, 100]}})["memory.size"]
    ValueList(values=(50, 100))
    """
    fields = dotted(tree, is_value=lambda section: bool(section.keys() & set(RANGE)))
    if not fields:
        raise UserError("the space is empty: name a field and its values, 'training.lr: [0.1, 1]'")
    return {
        key: _value_list(key, value) if isinstance(value, list) else _value_range(key, value)
        for key, value in fields.items()
    }


def _value_list(key: str, values: list[Any]) -> ValueList:
    if not values or not all(isinstance(v, bool | int | float | str | None) for v in values):
        raise UserError(f"{key}: expected a list of plain values, but got {values!r}")
    if len(set(map(repr, values))) < len(values):
        raise UserError(f"{key}: a value is listed twice: {values!r}")
    return ValueList(tuple(values))


def _value_range(key: str, value: Any) -> ValueRange:
    if not isinstance(value, Mapping):
        raise UserError(
            f"{key}: expected a list of values, or a range like {{low: 0.01, high: 1.0}}, "
            f"but got {value!r}"
        )
    for name in value:
        if name not in RANGE:
            raise unknown(f"field of {key}", str(name), RANGE)
    low, high, log = (value.get(name, False) for name in RANGE)
    numbers = all(type(v) in (int, float) for v in (low, high)) and type(log) is bool
    if not numbers or not -LARGEST <= low < high <= LARGEST or (log and low <= 0):
        raise UserError(
            f"{key}: expected finite low < high (above 0 where log), but got {dict(value)!r}"
        )
    return ValueRange(low, high, log)


def paper_space(config: RunConfig) -> Space:
    """The values that the paper's tables print for this method, with or without LiDER.

    Fields: the learning rate, the method's options and LiDER's weights, where rows differ.
    """
    method, lider = config.method.name, "lider" in config.regularizers
    values: dict[str, set[float]] = {}
    for preset in presets().values():
        if preset.printed and preset.method == method and preset.lider == lider:
            for key, value in dotted(preset.config).items():
                if key.startswith(SEARCHED) and type(value) in (int, float):
                    values.setdefault(key, set()).add(value)
    space: Space = {k: ValueList(tuple(sorted(v))) for k, v in values.items() if len(v) > 1}
    if not space:
        name = f"{method}{' + lider' if lider else ''}"
        raise UserError(
            f"the paper's tables have no values to choose from for {name}: --space FILE"
        )
    return space


def grid_size(space: Space) -> int:
    """The number of combinations; refuses ranges, which have no fixed number of values."""
    for key, values in space.items():
        if isinstance(values, ValueRange):
            raise UserError(f"--sampler grid needs a list of values for {key}, not a range")
    return prod(len(values.samples) for values in space.values())
