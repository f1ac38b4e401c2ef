"""BFP: its term against a plain computation, its projector, the old network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from liderlab.config.compatibility import why_not
from liderlab.regularizers.bfp import BFP
from liderlab.training.loop import Loop, StepDone, TaskDone
from liderlab.training.step import Step

Build = Callable[..., Loop]


def bfp_of(loop: Loop) -> BFP:
    regularizer = loop.regularizers[-1]
    assert isinstance(regularizer, BFP)
    return regularizer


def in_second_task(build: Build, method: str = "der++", **options: Any) -> tuple[Loop, Step]:
    loop = build(method, {"bfp": options})
    events = iter(loop)
    while loop.cursor.task == 0 or loop.cursor.batch < 2:
        next(events)
    loop.network.double().train()
    bfp_of(loop).double()
    task = loop.stream.tasks[1]
    return loop, loop._step(task, loop._plan(task)[0], 0)


def test_term_and_gradients_are_those_of_a_plain_computation(build: Build) -> None:
    """All rows of two passes of the method, with the features that the classifier sees."""
    loop, step = in_second_task(build, weight=0.7)
    bfp = bfp_of(loop)
    batches = [step.take(step.task.train, torch.arange(5), None), step.draw(8)]
    batches = [batch.replace(x=batch.x.double()) for batch in batches]
    for batch in batches:
        step.net(batch, update_stats=False)
    (term,) = bfp.losses(step).values()
    assert term.shape == (13,)
    rows = []
    for batch in batches:
        new = loop.network.features(batch.x)
        old = bfp.previous.features(batch.x)
        assert not old.requires_grad
        image = new @ bfp.projector.weight.T + bfp.projector.bias
        rows.append((image - old).square().sum(1).sqrt() / old.shape[1] ** 0.5)
    truth = 0.7 * torch.cat(rows).mean()
    torch.testing.assert_close(term.mean(), truth)
    weights = [*bfp.projector.parameters(), *loop.network.backbone.block1.parameters()]  # type: ignore[union-attr]
    for ours, theirs in zip(
        torch.autograd.grad(term.mean(), weights), torch.autograd.grad(truth, weights), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
    assert bfp.losses(step) == {}  # a pass counts once


def test_the_old_network_is_that_of_the_last_task(build: Build) -> None:
    loop = build("er", {"bfp": {}})
    bfp = bfp_of(loop)
    old: dict[str, torch.Tensor] = {}
    for event in loop:
        if isinstance(event, StepDone):
            assert ("bfp" in event.terms) == (event.task.index > 0)
            assert not bfp.previous.training
        if isinstance(event, StepDone) and old:
            now = bfp.previous.state_dict()
            assert all(torch.equal(now[name], value) for name, value in old.items())
        if isinstance(event, TaskDone):
            old = {name: value.clone() for name, value in loop.network.state_dict().items()}


def test_the_projector_is_drawn_anew_for_every_task(build: Build) -> None:
    """Uniform in ±1/√d, at its own rate, without weight decay."""
    loop = build("er", {"bfp": {"projector_lr": 0.0}})
    drawn = []
    for event in loop:
        if isinstance(event, StepDone) and event.batch == event.epoch == 0:
            drawn.append(bfp_of(loop).projector.weight.detach().clone())
    assert len(drawn) == 3
    assert not torch.equal(drawn[0], drawn[1])
    bound = drawn[0].shape[1] ** -0.5
    for weight in drawn:
        assert 0.9 * bound < weight.abs().max() <= bound
    groups = loop._learner.state_dict()["param_groups"]
    assert (groups[1]["lr"], groups[1]["weight_decay"]) == (0.0, 0.0)


def test_features_are_read_before_a_dropout(build: Build) -> None:
    for order in (["ssgd", "bfp"], ["bfp", "ssgd"]):
        loop = build("er", {name: {"dropout": 0.9} if name == "ssgd" else {} for name in order})
        bfp = next(r for r in loop.regularizers if isinstance(r, BFP))
        task = loop.stream.tasks[1]
        step = loop._step(task, loop._plan(task)[0], 0)
        loop.network.train()
        batch = step.take(task.train, torch.arange(8), None)
        step.net(batch, update_stats=False)
        ((_, features),) = bfp._heard
        torch.testing.assert_close(features, loop.network.features(batch.x))


def test_old_features_stay_a_linear_image(build: Build) -> None:
    """A least-squares fit of the old features to the new ones leaves less than without BFP."""

    def residual(weight: float) -> float:
        loop = build("finetune", {"bfp": {"weight": weight}} if weight else {}, epochs=8)
        old = None
        for event in loop:
            if isinstance(event, TaskDone) and event.task.index == 0:
                old = loop.network.frozen_copy()
            if isinstance(event, TaskDone) and event.task.index == 1:
                break
        assert old is not None
        x = torch.randn(200, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            new, target = (n.eval().features(x).double() for n in (loop.network, old))
        fitted = new @ torch.linalg.pinv(new) @ target
        return float((fitted - target).norm() / target.norm())

    assert residual(5.0) < residual(0.0)


@pytest.mark.parametrize("method", ["joint", "gdumb"])
def test_it_needs_tasks(method: str) -> None:
    assert "does not train task by task" in str(why_not(method, "bfp", {}))


def test_it_may_change_its_mode_before_it_knows_the_network() -> None:
    assert not BFP().train(False).training
