"""Values that people write: YAML files, and single fields like `training.lr=0.1`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from ..errors import UserError

Tree = dict[str, Any]
MOST = 100_000  # values in a text
LONGEST = 2**20  # bytes of a file


class Yaml(yaml.SafeLoader):
    """YAML 1.2: `on`, `no` and `2024-01-01` are words, `1e-3` is a number.

    Counts the values, with aliases written out, before it makes them: aliases of aliases can stand
    for more than any memory holds.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._total, self._sizes = 0, dict[int, int]()

    def compose_node(self, parent: Any, index: Any) -> Any:
        before, alias = self._total, self.check_event(yaml.AliasEvent)
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        # without a size, the value is not complete: it holds itself, which json refuses
        self._total += self._sizes.get(id(node), 1) if alias else 1
        if self._total > MOST:
            raise yaml.MarkedYAMLError(problem=f"more than {MOST:,} values", problem_mark=mark)
        if not alias:
            self._sizes[id(node)] = self._total - before
        return node


class YamlWriter(yaml.SafeDumper):
    """Quotes the words that `Yaml` would take for numbers."""


TAG = "tag:yaml.org,2002:"
EXPONENT = re.compile(r"^[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+$")
Yaml.yaml_implicit_resolvers = {
    first: [rule for rule in rules if rule[0] not in (f"{TAG}bool", f"{TAG}timestamp")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Yaml.add_implicit_resolver(f"{TAG}bool", re.compile("(?i)^(true|false)$"), "tTfF")
for either in (Yaml, YamlWriter):
    either.add_implicit_resolver(f"{TAG}float", EXPONENT, "-+.0123456789")


class _NotReadable(Exception):
    """The reason, with its place in the text where PyYAML knows it."""


def _load(text: str) -> Any:
    try:
        value = yaml.load(text, Loader=Yaml)
        json.dumps(value)  # refuses dates, bytes, sets, and lists that hold themselves
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1} " if mark else ""
        raise _NotReadable(f"{where}{error.problem}") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise _NotReadable("it holds a value that is no text, number, list or section") from None
    return value


def read_yaml(path: Path) -> Tree:
    """A configuration file as nested values."""
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise UserError(f"{path} has more than {LONGEST:,} bytes: it is not a configuration")
        tree = _load(data.decode())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (_NotReadable, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: {error}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise UserError(f"{path} must hold fields and their values, like 'seed: 0'")
    return tree


def parse_assignment(text: str) -> Tree:
    """One value from the command line.

    >>> parse_assignment("training.milestones=[3, 4]")
    {'training': {'milestones': [3, 4]}}
    """
    path, equals, value = text.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise UserError(f"expected a value like 'training.lr=0.1', but got {text!r}")
    try:
        tree = _load(value)
    except _NotReadable:
        shown = text if len(text) <= 80 else f"{text[:80]}…"
        raise UserError(f"cannot read the value of {shown!r}") from None
    for key in reversed(keys):
        tree = {key: tree}
    return tree
