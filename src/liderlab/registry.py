"""Names that the user can type, each with its facts and the class it stands for.

A registry names its classes by import path, so that listing what exists imports no torch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from .errors import unknown


@dataclass(frozen=True)
class Entry:
    """One choice: `target` is "package.module:Name", or the class or function itself."""

    target: str | Callable[..., Any]
    summary: str
    facts: dict[str, Any] = field(default_factory=dict)

    def load(self) -> Callable[..., Any]:
        if callable(self.target):
            return self.target
        module, name = self.target.split(":")
        return getattr(import_module(module), name)


class Registry(dict[str, Entry]):
    """A visible dict of entries that answers a wrong name with the nearest right one.

    >>> things = Registry("thing", {"sum": Entry(sum, "adds up")})
    >>> things.load("sum")([1, 2])
    3
    """

    def __init__(self, kind: str, entries: dict[str, Entry]) -> None:
        super().__init__(entries)
        self.kind = kind

    def entry(self, name: str) -> Entry:
        if name not in self:
            raise unknown(self.kind, name, self)
        return self[name]

    def load(self, name: str) -> Callable[..., Any]:
        return self.entry(name).load()
