"""Optimisers by name: their steps against torch's by hand, their state, wrong options."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.runs.build import completed
from liderlab.training.events import StepDone
from liderlab.training.learner import Learner
from liderlab.training.loop import Loop
from liderlab.training.optimizers import OPTIMIZERS, make_optimizer
from liderlab.types import Recipe

RECIPE = Recipe(lr=0.01, weight_decay=0.1, batch_size=8, replay_size=8)


def tiny() -> nn.Linear:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Linear(3, 2).double()


def loss(model: nn.Module) -> Tensor:
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
    return model(x).pow(4).sum(1)


@pytest.mark.parametrize(
    ("name", "options", "momentum", "theirs"),
    [
        ("sgd", {"nesterov": True}, 0.9, torch.optim.SGD),
        ("sgd", {"dampening": 0.5}, 0.9, torch.optim.SGD),
        ("adam", {"betas": [0.8, 0.9], "eps": 1e-3}, 0.0, torch.optim.Adam),
        ("adamw", {"amsgrad": True}, 0.0, torch.optim.AdamW),
        ("adamw", {}, 0.0, torch.optim.AdamW),
    ],
)
def test_steps_are_torchs(
    name: str, options: dict[str, Any], momentum: float, theirs: Callable[..., Any]
) -> None:
    ours, by_hand = tiny(), tiny()
    learner = Learner(ours, nn.Module(), [])
    make = make_optimizer(name, options, momentum)
    learner.start(replace(RECIPE, momentum=momentum, optimizer=make))
    own = options | ({"momentum": momentum} if momentum else {})
    optimizer = theirs(by_hand.parameters(), lr=0.01, weight_decay=0.1, **own)
    for epoch in range(5):
        learner.set_epoch(epoch)
        learner.step({"loss": loss(ours)})
        optimizer.zero_grad()
        loss(by_hand).mean().backward()
        optimizer.step()
    assert torch.equal(ours.weight, by_hand.weight)
    assert not torch.equal(ours.weight, tiny().weight)


def test_adamws_first_steps_in_closed_form() -> None:
    """w ← w − lr · decay · w − lr · m̂ / (√v̂ + ε), in float64."""
    ours = tiny()
    learner = Learner(ours, nn.Module(), [])
    learner.start(replace(RECIPE, optimizer=make_optimizer("adamw", {}, 0.0)))
    w = ours.weight.detach().clone()
    first, second = torch.zeros_like(w), torch.zeros_like(w)
    for number in range(1, 4):
        (gradient,) = torch.autograd.grad(loss(ours).mean(), ours.weight)
        learner.step({"loss": loss(ours)})
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        mean, square = first / (1 - 0.9**number), second / (1 - 0.999**number)
        w = w * (1 - 0.01 * 0.1) - 0.01 * mean / (square.sqrt() + 1e-8)
        torch.testing.assert_close(ours.weight.detach(), w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("per_task", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_run_resumes_to_the_bit_with_every_optimizer(
    build: Callable[..., Loop], differences: Any, name: str, per_task: bool
) -> None:
    momentum = 0.5 if name == "sgd" else 0.0
    recipe = replace(RECIPE, momentum=momentum, optimizer=make_optimizer(name, {}, momentum))

    def make() -> Loop:
        how = {"recipe": recipe, "optimizer_per_task": per_task, "epochs": 1}
        return build("er", {"lider": {}}, **how)

    whole = make()
    states = [deepcopy(whole.state_dict()) for event in whole if keep(event)]
    end = whole.state_dict()
    assert len(states) == 2
    for state in states:
        again = make()
        again.load_state_dict(state)
        for _ in again:
            pass
        assert not differences(again.state_dict(), end)


def keep(event: Any) -> bool:
    """In the middle of the second task, and at the end of the first."""
    if isinstance(event, StepDone):
        return bool(event.task.index == 1 and event.batch == 1)
    return bool(event.task.index == 0)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_a_kept_optimizer_goes_on_in_the_next_task(build: Callable[..., Loop], name: str) -> None:
    def state_in_the_second_task(per_task: bool) -> dict[str, Any]:
        momentum = 0.5 if name == "sgd" else 0.0
        recipe = replace(RECIPE, momentum=momentum, optimizer=make_optimizer(name, {}, momentum))
        loop = build("er", {}, recipe=recipe, optimizer_per_task=per_task, epochs=1)
        for event in loop:
            if event.task.index == 1:
                break
        state: dict[str, Any] = loop.state_dict()["optimizer"]["state"][0]
        return state

    new, kept = state_in_the_second_task(True), state_in_the_second_task(False)
    if name == "adamw":
        assert new["step"] == 1
        assert kept["step"] > 1
    else:
        assert not torch.equal(new["momentum_buffer"], kept["momentum_buffer"])


@pytest.mark.parametrize(
    ("training", "says"),
    [
        ({"optimizer": "adamm"}, "unknown optimizer 'adamm': did you mean 'adam'"),
        ({"optimizer": {"name": "adam", "nesterov": True}}, "adam: unknown field 'nesterov'"),
        ({"optimizer": "adam", "momentum": 0.9}, "adam takes no momentum.*training.momentum=0"),
        ({"optimizer": {"name": "adamw", "betas": [0.9]}}, "two betas"),
        ({"optimizer": {"name": "adamw", "betas": [0.9, 1.5]}}, "betas ≥ 0 and < 1"),
        ({"optimizer": {"name": "adam", "eps": -1}}, "eps ≥ 0"),
        ({"optimizer": {"nesterov": True}}, "nesterov needs training.momentum above 0"),
        ({"optimizer": 3}, "training.optimizer: expected a name"),
    ],
)
def test_wrong_optimizers_are_refused_in_one_sentence(training: Any, says: str) -> None:
    with pytest.raises(UserError, match=says) as error:
        completed(make_config({"benchmark": "synthetic", "training": training}))
    assert "\n" not in str(error.value)


def test_defaults_are_complete() -> None:
    config = make_config({"benchmark": "synthetic", "training": {"optimizer": "sgd"}})
    default = make_config({"benchmark": "synthetic"})
    assert completed(config).training == completed(default).training
    assert completed(default).training.optimizer == default.training.optimizer


def test_gdumb_fits_by_sgd(build: Callable[..., Loop]) -> None:
    recipe = replace(RECIPE, optimizer=make_optimizer("adamw", {}, 0.0))
    loop = build("gdumb", options={"fit_epochs": 1}, recipe=recipe, optimizer_per_task=False)
    for _ in loop:
        pass
    assert "nesterov" in loop.state_dict()["optimizer"]["param_groups"][0]
