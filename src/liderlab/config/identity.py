"""The fields that two runs share if they count as the same. No torch needed.

The marks on the fields (`schema.MayDiffer`) name the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from .diff import flat
from .schema import MayDiffer, RunConfig, Scope
from .yaml_values import Tree


@cache
def may_differ(scope: Scope) -> frozenset[str]:
    """Dotted names of the fields that may differ within a scope (see `MayDiffer`).

    >>> sorted(may_differ("resume"))
    ['checkpoint_every', 'devices', 'on_nonfinite', 'strategy', 'tracker']
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
    """The configuration as plain values, without the sections that may differ within the scope."""
    dropped = may_differ(scope) | {"schema"}
    return {k: v for k, v in config.model_dump(mode="json").items() if k not in dropped}


def experiment_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by their dotted names that are equal in all repetitions of an experiment.

    >>> experiment_fields({"seed": 1, "method": {"name": "er"}, "regularizers": {"lider": {}}})
    {'method.name': 'er', 'regularizers.lider': 'on'}
    """
    dropped = tuple(f"{field}." for field in may_differ("experiment") | {"schema"})
    fields = {k: v for k, v in flat(config).items() if not f"{k}.".startswith(dropped)}
    return fields | {f"regularizers.{name}": "on" for name in config["regularizers"]}
