"""Python files that register classes of the user's own: `imports: [my_method.py]`.

Every process that works on a run executes the files of its configuration before it looks up names.
The SHA-256 of their content is part of the run's origin.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from ..backbones import BACKBONES
from ..errors import UserError
from ..methods import METHODS
from ..registry import Registry
from ..regularizers import REGULARIZERS
from ..streams import BENCHMARKS
from ..streams.storage.location import absolute

REGISTRIES: tuple[Registry, ...] = (METHODS, REGULARIZERS, BACKBONES, BENCHMARKS)

_executed: dict[str, str] = {}  # SHA-256 of the executed content, by absolute path


def import_paths(value: Any) -> list[str]:
    """The field `imports` with absolute paths, each file once."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise UserError(f"imports must be a list of files, like [my_method.py], but got {value!r}")
    return list(dict.fromkeys(str(absolute(item)) for item in value))


def load_imports(paths: Iterable[str]) -> None:
    """Execute each file once per process, and once more if its content has changed.

    A refused file leaves the registries as they were.
    """
    for path in paths:
        content = _read(path)
        digest = hashlib.sha256(content).hexdigest()
        if _executed.get(path) == digest:
            continue
        before = [dict(registry) for registry in REGISTRIES]
        try:
            _forget(path)
            _execute(path, content, f"liderlab_import_{digest[:16]}")
        except UserError:
            for registry, entries in zip(REGISTRIES, before, strict=True):
                registry.clear()
                registry.update(entries)
            raise
        _executed[path] = digest


def are_loaded(paths: Iterable[str]) -> bool:
    return all(path in _executed for path in paths)


def import_checksums(paths: Sequence[str]) -> list[dict[str, str]]:
    """Path and SHA-256 of the content of each file, as this process has executed it."""
    return [{"name": path, "sha256": _executed[path]} for path in paths]


def check_imported(paths: Sequence[str], used: Iterable[tuple[Registry, str]]) -> None:
    """Refuse a name whose file is not in `imports`: other processes would not know it."""
    for registry, name in used:
        origin = registry[name].origin if name in registry else None
        if origin in _executed and origin not in paths:
            raise UserError(f"{registry.kind} {name!r} is in {origin}: add that file to imports")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UserError(f"cannot import {path}: {error.strerror}") from None


def _forget(path: str) -> None:
    """Remove the entries of an earlier content of the file."""
    for registry in REGISTRIES:
        for name in [name for name, entry in registry.items() if entry.origin == path]:
            del registry[name]


def _execute(path: str, content: bytes, name: str) -> None:
    """Run the file as the module `name`, and mark what it registers with its path."""
    before = [dict(registry) for registry in REGISTRIES]
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses and type hints look their module up
    try:
        exec(compile(content, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UserError(f"cannot import {path}: {_explained(error, path)}") from None
    count = 0
    for registry, old in zip(REGISTRIES, before, strict=True):
        for key, entry in list(registry.items()):
            if old.get(key) is entry:
                continue
            if key in old:
                owner = old[key].origin or "liderlab itself"
                raise UserError(
                    f"{path} registers {registry.kind} {key!r}, a name that {owner} has "
                    "registered: choose another name"
                )
            registry[key] = replace(entry, origin=path)
            count += 1
    if not count:
        kinds = ", ".join(sorted(registry.kind for registry in REGISTRIES))
        raise UserError(
            f"{path} registers nothing ({kinds}): it needs a line like "
            'METHODS["mine"] = Entry(Mine, "what it does")'
        )


def _explained(error: BaseException, path: str) -> str:
    """The exception's name, the line of the file, and the message, in one line.

    >>> _explained(ValueError("no"), "mine.py")
    'ValueError: no'
    """
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        lines, text = [error.lineno], error.msg
    else:
        text = str(error)
    where = f" in line {lines[-1]}" if lines else ""
    return " ".join(f"{type(error).__name__}{where}: {text}".split()).removesuffix(":")
