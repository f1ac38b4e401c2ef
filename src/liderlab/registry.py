"""Names that the user can type, each with a summary and the class or function it stands for.

A registry names its targets by import path, so that listing names and summaries imports no torch.
Installed packages add names by entry points; a package is imported when one of its names is used.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
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

    origin: the file or installed package that registered it; None for the lab itself.
    """

    target: str | Callable[..., Any]
    summary: str
    facts: dict[str, Any] = field(default_factory=dict)
    origin: str | None = None

    def load(self) -> Callable[..., Any]:
        if callable(self.target):
            return self.target
        module, _, name = self.target.partition(":")
        return attrgetter(name)(import_module(module))

    @property
    def installed(self) -> bool:
        """Whether it belongs to an installed package, which may not be imported yet."""
        return self.origin is not None and isinstance(self.target, str)


class Registry(MutableMapping[str, Entry]):
    """A mapping of entries; the error for an unknown name suggests the nearest one.

    group: of the entry points of installed packages; read when a name is first looked up.

    >>> things = Registry("thing", {"sum": Entry(sum, "adds up")})
    >>> things.load("sum")([1, 2])
    3
    """

    def __init__(self, kind: str, entries: Mapping[str, Entry], group: str | None = None) -> None:
        self.kind = kind
        self._own, self._group = dict(entries), group

    @property
    def _entries(self) -> dict[str, Entry]:
        if self._group is not None:
            group, self._group = self._group, None
            for name, entry in installed_entries(group).items():
                self._own.setdefault(name, entry)
        return self._own

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, name: str) -> Entry:
        """The entry of that name; imports the installed package that it belongs to."""
        if name not in self:
            raise unknown(self.kind, name, self)
        entry = self[name]
        return self._import(name, entry) if entry.installed else entry

    def _import(self, name: str, entry: Entry) -> Entry:
        """The entry with its target imported; a package may also register an `Entry`."""
        if not entry.target:
            raise UserError(
                f"{self.kind} {name!r} is registered by {entry.origin}: uninstall one of them"
            )
        try:
            target: Any = entry.load()
        except (Exception, SystemExit) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise UserError(
                f"{self.kind} {name!r} of {entry.origin} cannot be imported: {reason}"
            ) from None
        if isinstance(target, Entry):
            return replace(target, origin=entry.origin)
        return replace(entry, target=target)

    def load(self, name: str) -> Callable[..., Any]:
        return self.entry(name).load()

    def facts(self, name: str) -> dict[str, Any]:
        return self.entry(name).facts


def installed_entries(group: str) -> dict[str, Entry]:
    """The entries that installed packages register, by name; imports none of the packages.

    A name of two packages has no target: it is refused when it is used.
    """
    found: dict[str, Entry] = {}
    try:
        for point in entry_points(group=group):
            package = point.dist
            assert package is not None
            origin, summary = f"{package.name} {package.version}", package.metadata["Summary"] or ""
            target = point.value.partition("[")[0].strip()  # without extras
            if point.name in found:
                target, origin = "", f"{found[point.name].origin} and {origin}"
            found[point.name] = Entry(target, summary, origin=origin)
    except Exception as error:  # damaged metadata, which no command should depend on
        logging.getLogger("liderlab").warning("cannot read the entry points %s: %s", group, error)
    return found


class ClassRegistry(Registry, Generic[T]):
    """A registry of classes of one kind, whose facts are attributes of the class itself.

    rows: (name, "module:Target" in `package`, summary). A target may be a function: then the class
    is the one in its return annotation. The package's name is also the group of the entry points.
    """

    def __init__(self, kind: str, package: str, rows: Iterable[tuple[str, str, str]]) -> None:
        entries = {name: Entry(f"{package}.{target}", summary) for name, target, summary in rows}
        super().__init__(kind, entries, group=package)

    def class_of(self, name: str) -> type[T]:
        """The class behind a name; imports it."""
        target = self.load(name)
        made = target if inspect.isclass(target) else get_type_hints(target).get("return")
        if not inspect.isclass(made):
            raise UserError(f"{self.kind} {name!r} needs a return annotation: def …() -> Class")
        if not hasattr(made, "facts"):
            base = f"liderlab.{self.kind.capitalize()}"
            raise UserError(f"{self.kind} {name!r} is no subclass of {base}")
        return cast("type[T]", made)

    def facts(self, name: str) -> dict[str, Any]:
        return self.class_of(name).facts()
