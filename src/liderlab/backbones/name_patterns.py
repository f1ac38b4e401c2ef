"""Patterns that users write for the names in a backbone."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that match, and those below a module that does.

    >>> matching("blocks.*.attn", ["blocks.0.attn.qkv", "blocks.0.mlp.fc1"])
    ['blocks.0.attn.qkv']
    """
    return [n for n in names if fnmatchcase(n, pattern) or fnmatchcase(n, f"{pattern}.*")]


def shown(name: str) -> str:
    """A name as the network's authors gave it, without the wrapper of third-party networks."""
    return name.removeprefix("network.")
