"""Values that people write: YAML files, and single fields like `training.lr=0.1`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ..errors import UserError

Tree = dict[str, Any]


class Yaml(yaml.SafeLoader):
    """YAML 1.2, as everybody expects it: `on`, `no` and `2024-01-01` are words, `1e-3` is a number.

    What comes out can be written as JSON: no dates, no bytes, no sets, nothing that holds itself.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Depth first: whatever holds itself is met again before it is done, and refused."""
        return super().construct_object(node, deep=True)


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
Yaml.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag not in {TAG + kind for kind in ("timestamp", "binary", "set", "omap", "pairs")}
}


def _printable(loader: Yaml, node: yaml.ScalarNode) -> int:
    value = int(loader.construct_yaml_int(node))
    str(value)  # a hexadecimal number of thousands of digits could not be written down again
    return value


Yaml.add_constructor(f"{TAG}int", _printable)


NO_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)
"""What becomes of texts that are no YAML, of `!!int abc`, `[[[[…`."""


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "too deep"
    return "not text" if isinstance(error, UnicodeDecodeError) else "a number is none"


def read_yaml(path: Path) -> Tree:
    """A configuration file as nested values."""
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"), Loader=Yaml)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except NO_YAML as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or _problem(error)
        raise UserError(f"{path} is not valid YAML:{where} {problem}") from None
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
        tree: Any = yaml.load(value, Loader=Yaml)
    except NO_YAML:
        shown = text if len(text) <= 80 else f"{text[:80]}…"
        raise UserError(f"cannot read the value of {shown!r}") from None
    for key in reversed(keys):
        tree = {key: tree}
    return tree
