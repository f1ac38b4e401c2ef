"""Values that people write: YAML files, and single fields like `training.lr=0.1`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ..errors import UserError

Tree = dict[str, Any]


class Yaml(yaml.SafeLoader):
    """YAML 1.2's booleans, true and false: `on` and `no` are words, as everybody expects."""


Yaml.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if not tag.endswith(":bool")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Yaml.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("(?i)^(true|false)$"), "tTfF")


def _printable(loader: Yaml, node: yaml.ScalarNode) -> int:
    value = int(loader.construct_yaml_int(node))
    str(value)  # a hexadecimal number of thousands of digits could not be written down again
    return value


Yaml.add_constructor("tag:yaml.org,2002:int", _printable)


NO_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)
"""What becomes of texts that are no YAML, of dates that are none, `!!int abc`, `[[[[…`."""


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "too deep"
    return "not text" if isinstance(error, UnicodeDecodeError) else "a date or number is none"


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
