"""STAR: its term and gradient against a plain computation, its rows, its side effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from liderlab.config.compatibility import why_not
from liderlab.regularizers import star
from liderlab.training.loop import Loop
from liderlab.training.step import Step

Build = Callable[..., Loop]


def prepared(build: Build, **options: Any) -> tuple[Loop, Step]:
    """A loop in float64 in its second task, trained a little, and a step of it."""
    loop = build("er", {"star": options}, epochs=3)
    events = iter(loop)
    while loop.cursor.task == 0:
        next(events)
    loop.network.double().train()
    task = loop.stream.tasks[1]
    return loop, loop._step(task, loop._plan(task)[0], 0)


def doubled(step: Step, monkeypatch: pytest.MonkeyPatch, right: int = 6) -> Any:
    """The only batch that the step draws now, in float64; so many rows are classified right."""
    batch = step.draw(8)
    batch = batch.replace(x=batch.x.double())
    with torch.no_grad():
        predicted = step.probe(batch.x).argmax(1)
    y = (predicted + 1) % 6
    y[:right] = predicted[:right]
    batch = replace(batch, y=y)
    monkeypatch.setattr(step, "draw", lambda n=None, generator=None: batch)
    return batch


def test_term_and_gradient_are_those_of_a_plain_computation(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One ascent step from the same noise, with autograd on a flat list of weights."""
    loop, step = prepared(build, weight=0.7, gamma=0.05)
    batch = doubled(step, monkeypatch)
    network = loop.network
    weights = {n: p for n, p in network.named_parameters() if p.dim() > 1}
    noise = {n: torch.randn_like(w) for n, w in weights.items()}
    start = {n: 0.1 * 0.05 * w.detach().norm() * noise[n] / noise[n].norm()
             for n, w in weights.items()}  # fmt: skip
    monkeypatch.setattr(star, "_noise", lambda step, weights, radius: start)

    def q(change: dict[str, Tensor]) -> Tensor:
        buffers = {n: b.clone() for n, b in network.named_buffers()}
        moved = {n: w + change[n] for n, w in weights.items()}
        return functional_call(network, moved | buffers, (batch.x,)).log_softmax(1)

    clean = q({n: torch.zeros_like(w) for n, w in weights.items()}).detach()
    right = clean.argmax(1) == batch.y
    assert right.sum() == 6

    def kl(change: dict[str, Tensor]) -> Tensor:
        rows = F.kl_div(q(change), clean, log_target=True, reduction="none").sum(1)
        return rows[right].mean()

    slopes = torch.autograd.grad(kl(start), list(weights.values()))
    delta = {}
    for (name, w), slope in zip(weights.items(), slopes, strict=True):
        radius = 0.05 * w.detach().norm()
        moved = start[name] + radius * slope / slope.norm()
        delta[name] = moved * min(1.0, float(radius / moved.norm()))
    truth = 0.7 * kl(delta)
    (term,) = loop.regularizers[0].losses(step).values()
    torch.testing.assert_close(term.mean(), truth)
    ours = torch.autograd.grad(term.mean(), list(network.parameters()))
    theirs = torch.autograd.grad(truth, list(network.parameters()))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)
    assert truth > 100 * 0.7 * kl(start)  # the ascent climbs


def test_more_steps_climb_higher(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, step = prepared(build, weight=1.0, gamma=0.02)
    doubled(step, monkeypatch)
    (regularizer,) = loop.regularizers
    heights = []
    for steps in (1, 20):
        step.generator("star").manual_seed(0)
        regularizer.steps = steps  # type: ignore[assignment]
        heights.append(float(regularizer.losses(step)["star"].detach().mean()))
    assert 0 < heights[0] < heights[1]


@pytest.mark.parametrize("right", [0, 1, 2])
def test_fewer_than_two_right_rows_do_not_count(
    right: int, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, step = prepared(build)
    doubled(step, monkeypatch, right)
    (term,) = loop.regularizers[0].losses(step).values()
    assert (term.mean() > 0) == (right == 2)
    gradients = torch.autograd.grad(term.mean(), list(loop.network.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients) == (right == 2)


def test_statistics_and_weights_stay(build: Build) -> None:
    loop, step = prepared(build, gamma=0.5, steps=3)
    loop.network.float()
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    assert loop.regularizers[0].losses(step)["star"].sum() > 0
    for name, value in loop.network.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_it_needs_replayed_samples() -> None:
    reason = why_not("finetune", "star", {})
    assert reason is not None
    assert reason.startswith("star needs replayed samples and finetune has no memory")
    assert "stream" not in reason  # it has no such option


def test_the_ascent_starts_at_a_tenth_of_the_radius(build: Build) -> None:
    _, step = prepared(build)
    weights = {"a": torch.ones(3, 4, dtype=torch.float64), "b": torch.ones(5, dtype=torch.float64)}
    radius = {"a": torch.tensor(2.0), "b": torch.tensor(0.5)}
    noise = star._noise(step, weights, radius)
    assert {name: delta.norm().item() for name, delta in noise.items()} == pytest.approx(
        {"a": 0.2, "b": 0.05}
    )
