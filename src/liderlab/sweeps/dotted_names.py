"""Conversion between dotted names, like `training.lr`, and nested sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UserError

Tree = dict[str, Any]


def nested(fields: Mapping[str, Any]) -> Tree:
    """Turn dotted names into sections.

    >>> nested({"training.lr": 0.1, "training.epochs": 2, "seed": 0})
    {'training': {'lr': 0.1, 'epochs': 2}, 'seed': 0}
    """
    tree: Tree = {}
    for key, value in fields.items():
        *sections, last = str(key).split(".")
        inner = tree
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                raise UserError(f"{key} and {section} cannot both be given: put one in the other")
        inner[last] = value
    return tree


def dotted(tree: Mapping[str, Any], is_value: Callable[[Tree], bool] = lambda _: False) -> Tree:
    """Turn sections into dotted names. Empty sections, and those with `is_value`, are values.

    >>> dotted({"regularizers": {"lider": {}}, "training": {"lr": 0.1}})
    {'regularizers.lider': {}, 'training.lr': 0.1}
    """
    fields: Tree = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value and not is_value(dict(value)):
            inner = dotted(value, is_value)
            fields |= {f"{key}.{name}": item for name, item in inner.items()}
        else:
            fields[str(key)] = value
    return fields
