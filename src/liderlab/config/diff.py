"""The differences between two configurations, by dotted names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Tree = Mapping[str, Any]


def differences(before: Tree, now: Tree) -> dict[str, str]:
    """Every changed field with its old and new value.

    Another method, backbone or benchmark is one change, and so is a regulariser that was switched
    on or off, however many options change with it.

    >>> differences({"seed": 0, "method": {"name": "er"}}, {"seed": 1, "method": {"name": "er"}})
    {'seed': 'was 0, now 1'}
    >>> differences({"regularizers": {"lider": {"alpha": 0.1}}}, {"regularizers": {}})
    {'regularizers.lider': 'was on, now off'}
    """
    old, new = flat(before), flat(now)
    changed = {
        key: f"was {old.get(key)!r}, now {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    }
    choices = {key.removesuffix("name") for key in changed if key.endswith(".name")}
    there, here = (set(tree.get("regularizers") or {}) for tree in (before, now))
    switched = {
        f"regularizers.{name}": "was on, now off" if name in there else "was off, now on"
        for name in sorted(there ^ here)
    }
    told = (*choices, *(f"{name}." for name in switched))
    rest = {k: v for k, v in changed.items() if k.endswith(".name") or not k.startswith(told)}
    return rest | switched


def flat(tree: Tree, prefix: str = "") -> dict[str, Any]:
    """Nested values by their dotted names.

    >>> flat({"a": {"b": 1}, "c": 2})
    {'a.b': 1, 'c': 2}
    """
    items: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            items |= flat(value, f"{prefix}{key}.")
        else:
            items[f"{prefix}{key}"] = value
    return items
