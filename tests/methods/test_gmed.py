"""GMED: an edit is one step up the look-ahead objective, kept in the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from liderlab.methods.gmed import GMED
from liderlab.training.loop import Loop
from liderlab.types import Recipe

DOUBLE = torch.float64
LR = 0.5

# The values called released were made by running `ExperienceEvolveApprox.edit_mem_interfere` of the
# authors' public code (INK-USC/GMED, ocl/ver_approx.py; one line of it made fit for today's torch)
# on just these numbers, for the network tanh(W x): stride 0.6, decay 0.1. That code takes the mean
# over the three rows where the paper edits each example by itself (so α = 0.6 / 3), and *adds*
# β ∇ℓ where the paper subtracts it (so its strength was set to −0.05 for β = 0.05).
WEIGHT = torch.tensor(
    [[1.5, -0.25, -2.125, 0.625], [-1.125, -1.375, 0.375, 0.875], [-0.75, -0.375, -0.625, 0.125]]
)
STREAM = (
    torch.tensor(
        [
            [0.5, -0.125, 1.5, 0.25],
            [-0.125, -0.625, 1.0, 0.5],
            [-0.625, 0.875, 1.0, 0.125],
            [-0.5, -0.25, -1.625, 1.75],
            [-0.5, 0.75, 1.5, 3.375],
        ]
    ),
    torch.tensor([0, 1, 2, 1, 0]),
)
MEMORY = {
    "x": torch.tensor(
        [[0.5, -1.375, 0.25, 0.5], [-2.25, 0.25, -1.0, -0.5], [0.25, -0.875, 0.0, 0.25]]
    ),
    "y": torch.tensor([0, 2, 1]),
    "edits": torch.tensor([0, 2, 1]),
}
RELEASED = torch.tensor(
    [
        [0.510664, -1.372437, 0.241491, 0.498299],
        [-2.246193, 0.254693, -1.003553, -0.503466],
        [0.244632, -0.875543, 0.012478, 0.250929],
    ]
)
UNIT = 255.0**2  # α is for pixels in 0…1, and the tests' pixels are taken as they are


def step_of(make_step: Callable[..., Any], method: GMED, **how: Any) -> Any:
    how = {"train": STREAM, "task": 0, "tasks": 1, "size": 8, "lr": LR, "memory": MEMORY} | how
    step, batch = make_step(method, WEIGHT, draws=[[0, 1, 2]], **how)
    step.network.readout = torch.nn.Tanh()
    step.network.backbone.first.requires_grad_(False)
    return step, batch


def edited_pixels(step: Any) -> Tensor:
    """The three rows, which have been in the memory from the beginning."""
    pixels: Tensor = step.memory.data["x"][:3]
    return pixels


def test_an_edit_is_the_released_one(make_step: Callable[..., Any]) -> None:
    method = GMED(alpha=0.6 / 3 / UNIT, beta=0.05, gamma=0.9)
    step, batch = step_of(make_step, method)
    stream = F.cross_entropy(step.network(batch.x), batch.y, reduction="none")
    edited = method.edited(step.draw(), stream, step)
    torch.testing.assert_close(edited.flatten(1).float(), RELEASED, atol=2e-6, rtol=0)


def objective(pixels: Tensor, beta: float) -> Tensor:
    """Σ ℓ(θ⁺) − (1 + β) ℓ(θ) of memory rows, written out: θ⁺ depends on the stream alone."""
    weight = WEIGHT.double().requires_grad_()
    x, y = STREAM[0].double(), STREAM[1]
    loss = F.cross_entropy((x @ weight.T).tanh(), y)
    ahead = weight - LR * torch.autograd.grad(loss, weight)[0]
    now, then = (
        F.cross_entropy((pixels.flatten(1) @ w.T).tanh(), MEMORY["y"], reduction="sum")
        for w in (weight, ahead)
    )
    return then - (1 + beta) * now


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_an_edit_is_the_gradient_of_the_look_ahead_objective(
    beta: float, make_step: Callable[..., Any]
) -> None:
    method = GMED(alpha=1 / UNIT, beta=beta, gamma=1.0)
    step, batch = step_of(make_step, method)
    method.losses(batch, step)
    step.finish()
    moved = edited_pixels(step) - MEMORY["x"].double().reshape(3, 1, 2, 2)
    pixels = MEMORY["x"].double().requires_grad_()
    (expected,) = torch.autograd.grad(objective(pixels, beta), pixels)
    torch.testing.assert_close(moved.flatten(1), expected)
    h, pixels = 1e-6, pixels.detach()
    for row in range(3):
        for place in range(4):
            shift = torch.zeros(3, 4, dtype=DOUBLE)
            shift[row, place] = h
            slope = (objective(pixels + shift, beta) - objective(pixels - shift, beta)) / (2 * h)
            assert moved.flatten(1)[row, place].item() == pytest.approx(slope.item(), abs=1e-7)


def test_further_edits_are_shorter_and_are_counted(make_step: Callable[..., Any]) -> None:
    moves = []
    for gamma in (1.0, 0.5):
        method = GMED(alpha=1 / UNIT, gamma=gamma)
        step, batch = step_of(make_step, method)
        method.losses(batch, step)
        step.finish()
        moves.append(edited_pixels(step).flatten(1) - MEMORY["x"].double())
        assert step.memory.data["edits"][:3].tolist() == [1, 3, 2]
    torch.testing.assert_close(moves[1], moves[0] * torch.tensor([[1.0], [0.25], [0.5]]).double())


def test_the_edited_samples_are_replayed(make_step: Callable[..., Any]) -> None:
    method = GMED(alpha=1 / UNIT)
    step, batch = step_of(make_step, method)
    terms = method.losses(batch, step)
    step.finish()
    logits = step.network(edited_pixels(step))
    expected = F.cross_entropy(logits, MEMORY["y"], reduction="none")
    torch.testing.assert_close(terms["replay"], expected)
    before = F.cross_entropy(step.network(MEMORY["x"].double().reshape(3, 1, 2, 2)), MEMORY["y"])
    assert abs(terms["replay"].mean() - before) > 1e-4


def test_the_look_ahead_uses_the_learning_rate_of_the_moment(make_step: Callable[..., Any]) -> None:
    method = GMED(alpha=1 / UNIT, beta=0.0)
    step, batch = step_of(make_step, method, lr=0.0)
    method.losses(batch, step)
    step.finish()
    assert torch.equal(edited_pixels(step).flatten(1), MEMORY["x"].double())  # nothing ahead


def test_edits_below_one_grey_level_survive_and_end_with_the_sample(
    build: Callable[..., Loop],
) -> None:
    loop = build("gmed", options={"alpha": 0.01})
    for _ in loop:
        pass
    data = loop.memory.data
    assert data["x"].dtype == torch.float32
    edited = data["edits"] > 0
    assert edited.any()
    off_grid = (data["x"] != data["x"].round()).flatten(1).any(1)
    assert (off_grid == edited).all()
    slot = int(edited.nonzero()[0])
    rows = loop.stream.tasks[0].train.rows(torch.arange(60) % len(loop.stream.tasks[0].train))
    while data["edits"][slot] > 0:  # until another sample replaces it
        loop.memory.seen = 0
        loop.memory.offer(torch.Generator().manual_seed(0), **rows)
    assert torch.equal(data["x"][slot], data["x"][slot].round())


def test_with_edits_of_size_zero_it_is_experience_replay(build: Callable[..., Loop]) -> None:
    """α = 0 edits nothing, so that only the pixels' type differs from ER."""
    ends = []
    for name, options in (("gmed", {"alpha": 0.0}), ("er", {})):
        loop = build(name, options=options)
        for _ in loop:
            pass
        ends.append(loop.network.state_dict())
    for name, value in ends[0].items():
        torch.testing.assert_close(value, ends[1][name])


@pytest.mark.parametrize(
    ("option", "value"), [("alpha", -1.0), ("beta", -1.0), ("gamma", 1.5), ("gamma", -0.1)]
)
def test_wrong_options_are_refused(option: str, value: float) -> None:
    with pytest.raises(ValueError, match="Expected"):
        GMED(**{option: value})


def test_dropout_does_not_cause_edits(build: Callable[..., Loop]) -> None:
    """Both passes drop out the same units: where the step ahead is nothing, so is the edit."""
    moved: dict[float, float] = {}
    for lr in (1e-9, 0.1):
        loop = build("gmed", {"ssgd": {"dropout": 0.3}}, options={"beta": 0.0}, epochs=1)
        method = loop.method
        assert isinstance(method, GMED)
        found: list[float] = []
        edit = method.edited

        def edited(replay: Any, stream: Tensor, step: Any, edit=edit, found=found) -> Tensor:
            new = edit(replay, stream, step)
            found.append(float((new - replay.raw).abs().mean()))
            return new

        method.edited = edited  # type: ignore[method-assign]
        loop._recipe = Recipe(lr=lr, batch_size=8, replay_size=8)
        for _ in loop:
            pass
        moved[lr] = max(found)
    assert moved[1e-9] < 1e-3 * moved[0.1]
