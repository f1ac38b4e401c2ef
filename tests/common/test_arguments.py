"""Extreme values of every numeric option of methods, regularisers, backbones and benchmarks.

The options are read from the signatures, so that a new one is tried by itself. A value is refused
in one sentence before a run begins, or the run goes through.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import pytest

from liderlab.backbones import BACKBONES
from liderlab.config.compatibility import why_not
from liderlab.config.merging import make_config
from liderlab.config.options import SUPPLIED
from liderlab.errors import UserError
from liderlab.methods import METHODS
from liderlab.registry import Registry
from liderlab.regularizers import REGULARIZERS
from liderlab.runs.build import build, completed
from liderlab.streams import BENCHMARKS
from liderlab.training.loop import Loop
from short_options import SMALL, short_options

NEVER = (math.nan, math.inf, -math.inf)
REGISTRIES: dict[str, Registry] = {
    "method": METHODS,
    "regularizer": REGULARIZERS,
    "backbone": BACKBONES,
    "benchmark": BENCHMARKS,
}


def numbers(kind: str) -> Iterator[tuple[str, str]]:
    """(name, argument) of every numeric option of the registry."""
    for name, entry in REGISTRIES[kind].items():
        target = entry.load()
        function = target.__init__ if inspect.isclass(target) else target
        for argument, hint in get_type_hints(function).items():
            if argument not in SUPPLIED[kind] and {int, float} & {hint, *get_args(hint)}:
                yield name, argument


CASES = [(kind, *case) for kind in REGISTRIES for case in numbers(kind)]


def tree(kind: str, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """A small run with these options."""
    small = {"benchmark": {"name": "synthetic"}, "backbone": {"name": "convnet-small", "width": 8}}
    if kind == "regularizer":
        return small | {"method": {"name": "er"}, "regularizers": {name: options}}
    return small | {kind: {"name": name, **options}}


def prepare(tree: dict[str, Any]) -> None:
    """Run all checks that come before a run begins."""
    build(completed(make_config(tree)))


def test_cases_cover_every_registry() -> None:
    assert {kind for kind, *_ in CASES} == set(REGISTRIES)
    assert ("method", "x-der-rpc", "gamma") in CASES
    assert ("regularizer", "lider", "iterations") in CASES


@pytest.mark.parametrize(("kind", "name", "argument"), CASES)
def test_nan_and_infinity_are_refused_in_one_sentence(kind: str, name: str, argument: str) -> None:
    for value in NEVER:
        with pytest.raises(UserError, match=argument) as refused:
            prepare(tree(kind, name, {argument: value}))
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("kind", "name", "argument"), CASES)
def test_negative_numbers_are_refused_in_one_sentence(kind: str, name: str, argument: str) -> None:
    with pytest.raises(UserError, match=argument) as refused:
        prepare(tree(kind, name, {argument: -1}))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "name", "argument"), [case for case in CASES if case[0] in ("method", "regularizer")]
)
def test_zero_is_refused_or_runs(
    kind: str, name: str, argument: str, build: Callable[..., Loop]
) -> None:
    method = name if kind == "method" else "er"
    regularizers = {} if kind == "method" else {name: SMALL.get(name, {}) | {argument: 0}}
    options = short_options(name, 2) | {argument: 0} if kind == "method" else {}
    assert kind == "method" or why_not(method, name, {}) is None
    try:
        loop = build(method, regularizers, options=options, epochs=1)
    except ValueError as refused:
        assert argument in str(refused)
    else:
        assert all(loop)


@pytest.mark.parametrize("section", ["training", "memory"])
def test_numbers_of_training_and_memory_are_checked_alike(section: str) -> None:
    fields = {
        "training": ("epochs", "batch_size", "replay_size", "lr", "momentum", "gamma"),
        "memory": ("size", "poison"),
    }
    for field in fields[section]:
        for value in (*NEVER, -1, 10**400):
            with pytest.raises(UserError, match=f"{section}.{field}") as refused:
                make_config({section: {field: value}})
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize("milestones", [[-1], [0], [3, 2], [2, 2], [math.nan], 3, "ab", [None]])
def test_milestones_are_growing_epochs(milestones: Any) -> None:
    with pytest.raises(UserError, match=r"training.milestones") as refused:
        make_config({"training": {"milestones": milestones}})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "argument"),
    [("x-der-rpc", "gamma"), ("gmed", "gamma"), ("gdumb", "cutmix_probability")],
)
def test_shares_are_at_most_one(name: str, argument: str) -> None:
    with pytest.raises(UserError, match=f"{argument} ≥ 0 and ≤ 1, but got 3"):
        prepare(tree("method", name, {argument: 3}))
