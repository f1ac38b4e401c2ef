"""The fields that two runs share if they count as the same. No torch needed.

The marks on the fields (`schema.MayDiffer`) name the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from .diff import flat
from .lider_forms import PAPER
from .migrations import NEW_FIELDS
from .schema import MayDiffer, RunConfig, Scope
from .yaml_values import Tree

PINNED_FIRST = ("estimator", "reading", "weights")
GDUMB = {"method.momentum": 0.9, "method.optimizer_per": "fit", "method.collect": "once"}
UNSAID = (
    NEW_FIELDS
    | GDUMB
    | {f"regularizers.lider.{k}": v for k, v in PAPER.items() if k not in PINNED_FIRST}
)
"""Values that older configurations did not spell out: fields of schemas 3 to 5, later options of
GDumb, and the options that presets pin since forms of LiDER have names. A run that has these values
keeps its identity."""


@cache
def may_differ(scope: Scope) -> frozenset[str]:
    """Dotted names of the fields that may differ within a scope (see `MayDiffer`).

    >>> sorted(may_differ("resume"))
    ['checkpoint_every', 'devices', 'imports', 'on_nonfinite', 'strategy', 'tracker']
    """
    return frozenset(_marked(RunConfig, scope))


def _marked(model: type[BaseModel], scope: Scope) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if any(isinstance(mark, MayDiffer) and scope in mark.within for mark in field.metadata):
            yield name
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from (f"{name}.{inner}" for inner in _marked(kind, scope))


def identity(config: RunConfig, scope: Scope) -> Tree:
    """The configuration as plain values, without the sections that may differ within the scope and
    without new fields at the values of older runs."""
    dropped = may_differ(scope) | {"schema"}
    tree = _without_new(config.model_dump(mode="json"))
    return {k: v for k, v in tree.items() if k not in dropped}


def _without_new(tree: Mapping[str, Any], prefix: str = "") -> Tree:
    """The tree without the values that older configurations did not spell out.

    >>> _without_new({"seed": 1, "regularizers": {"lider": {"alpha": 0.1, "target_lr": 1.0}}})
    {'seed': 1, 'regularizers': {'lider': {'alpha': 0.1}}}
    """
    kept: Tree = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if name not in UNSAID or value != UNSAID[name]:
            kept[key] = _without_new(value, f"{name}.") if isinstance(value, Mapping) else value
    return kept


def experiment_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by their dotted names that are equal in all repetitions of an experiment.

    >>> experiment_fields({"seed": 1, "method": {"name": "er"}, "regularizers": {"lider": {}}})
    {'method.name': 'er', 'regularizers.lider': 'on'}
    """
    dropped = tuple(f"{field}." for field in may_differ("experiment") | {"schema"})
    known = flat(_without_new(config)).items()
    fields = {k: v for k, v in known if not f"{k}.".startswith(dropped)}
    return fields | {f"regularizers.{name}": "on" for name in config["regularizers"]}
