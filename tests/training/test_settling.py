"""`Step.settle`: a term's gradient is taken at once; its pass's maps are free, the bits stay."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from liderlab.training.loop import Loop
from liderlab.training.step import Step

Build = Callable[..., Loop]
SETTLING = ("er", "er-ace", "der++", "gmed", "a-gem")


def wait(step: Step, term: Tensor) -> Tensor:
    """`settle` of a step that back-propagates all terms together."""
    return term


@pytest.mark.parametrize(
    "regularizers", [{}, {"lider": {}}, {"lider": {"on": "stream"}}, {"sam": {}}], ids=str
)
@pytest.mark.parametrize("method", SETTLING)
def test_bits_are_those_of_one_backward_pass(
    build: Build,
    differences: Any,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    regularizers: dict[str, Any],
) -> None:
    loop = build(method, regularizers=regularizers, epochs=1)
    values = [event.terms for event in loop if hasattr(event, "terms")]
    monkeypatch.setattr(Step, "settle", wait)
    together = build(method, regularizers=regularizers, epochs=1)
    assert differences(values, [e.terms for e in together if hasattr(e, "terms")]) == []
    assert differences(loop.state_dict(), together.state_dict()) == []


class Kept:
    """A tensor that a backward pass waits for."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def most_kept(loop: Loop) -> int:
    """The most bytes that were kept for backward passes at any moment of a run."""
    now = most = 0

    def free(size: int) -> None:
        nonlocal now
        now -= size

    def keep(tensor: Tensor) -> Kept:
        nonlocal now, most
        kept, size = Kept(tensor), tensor.nbytes
        weakref.finalize(kept, free, size)
        now += size
        most = max(most, now)
        return kept

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda kept: kept.tensor):
        for _ in loop:
            pass
    return most


@pytest.mark.parametrize(("method", "share"), [("er", 1 / 2), ("er-ace", 1 / 2), ("der++", 2 / 3)])
def test_a_step_keeps_the_maps_of_one_pass_less(
    build: Build, monkeypatch: pytest.MonkeyPatch, method: str, share: float
) -> None:
    settled = most_kept(build(method, epochs=1))
    monkeypatch.setattr(Step, "settle", wait)
    assert settled == pytest.approx(share * most_kept(build(method, epochs=1)), rel=0.05)


def test_a_pass_that_a_regularizer_hears_is_kept(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, kept = Step.settle, []

    def watched(step: Step, term: Tensor) -> Tensor:
        kept.append(settle(step, term) is term)
        return term if kept[-1] else term.detach()

    monkeypatch.setattr(Step, "settle", watched)
    for on, expected in (("stream", True), ("replay", False)):
        kept.clear()
        for _ in build("er", regularizers={"lider": {"on": on}}, epochs=1):
            pass
        assert kept
        assert set(kept) == {expected}


def test_gradients_do_not_outlive_their_step(build: Build) -> None:
    loop = build("er-ace", epochs=1)
    for _ in loop:
        assert all(parameter.grad is None for parameter in loop.network.parameters())
