"""Names that the user can type, each with a summary and the class or function it stands for.

A registry names its targets by import path, so that listing names and summaries imports no torch.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar, cast, get_type_hints

from .errors import UserError, unknown


class Described(Protocol):
    """A class that states facts about itself."""

    @classmethod
    def facts(cls) -> dict[str, Any]: ...


T = TypeVar("T", bound=Described)


@dataclass(frozen=True)
class Entry:
    """One choice: `target` is "package.module:Name", or the class or function itself.

    origin: the file or package that registered it; None for the lab itself.
    """

    target: str | Callable[..., Any]
    summary: str
    facts: dict[str, Any] = field(default_factory=dict)
    origin: str | None = None

    def load(self) -> Callable[..., Any]:
        if callable(self.target):
            return self.target
        module, name = self.target.split(":")
        return getattr(import_module(module), name)


class Registry(dict[str, Entry]):
    """A dict of entries; the error for an unknown name suggests the nearest one.

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

    def facts(self, name: str) -> dict[str, Any]:
        return self.entry(name).facts


class ClassRegistry(Registry, Generic[T]):
    """A registry of classes of one kind, whose facts are attributes of the class itself.

    rows: (name, "module:Target" in `package`, summary). A target may be a function: then the class
    is the one in its return annotation.
    """

    def __init__(self, kind: str, package: str, rows: Iterable[tuple[str, str, str]]) -> None:
        entries = {name: Entry(f"{package}.{target}", summary) for name, target, summary in rows}
        super().__init__(kind, entries)

    def class_of(self, name: str) -> type[T]:
        """The class behind a name; imports it."""
        target = self.load(name)
        made = target if inspect.isclass(target) else get_type_hints(target).get("return")
        if not inspect.isclass(made):
            raise UserError(f"{self.kind} {name!r} needs a return annotation: def …() -> Class")
        return cast("type[T]", made)

    def facts(self, name: str) -> dict[str, Any]:
        return self.class_of(name).facts()
