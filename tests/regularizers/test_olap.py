"""oLAP's penalty against dense quadratic forms, and its curvature against the dense Fisher."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from liderlab.functional.curvature import kronecker_factors, kronecker_layers, weight_matrix
from liderlab.regularizers.oewc import OEWC
from liderlab.regularizers.olap import OLAP
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop
from liderlab.training.step import Step
from liderlab.types import Fit, Recipe

Build = Callable[..., Loop]


def step_of(loop: Loop, task: int) -> Step:
    """The step that a regulariser gets at the end of a task."""
    now = loop.stream.tasks[task]
    return loop._step(now, Fit(now.train, 1, Recipe(0.1)), 1)


def move(network: nn.Module, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))


def covariance(size: int, generator: torch.Generator) -> Tensor:
    a = torch.randn(size, size, generator=generator, dtype=torch.float64)
    return a @ a.mT


def conv_net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3, bias=False)
    ).double()


def test_penalty_and_gradient_are_the_dense_quadratic_form() -> None:
    """λ/2 θᵀ Λ θ with Λ block-diagonal, its Kronecker products written out."""
    network, olap = conv_net(), OLAP(weight=3.0)
    olap.attach(network)
    generator = torch.Generator().manual_seed(1)
    for block in olap.blocks:
        for factor in block.factors:
            factor.copy_(covariance(len(factor), generator))
    olap.importance.copy_(torch.rand(4, generator=generator))
    olap.mass.fill_(1.7)
    olap.loaded()
    mode = [p.detach().clone() for p in network.parameters()]
    move(network)
    terms = olap.losses(SimpleNamespace(network=network))
    assert list(terms) == ["olap"]
    assert terms["olap"].shape == ()

    conv_w, conv_b, scale, shift, fc = (
        p - m for p, m in zip(network.parameters(), mode, strict=True)
    )
    blocks = [
        (torch.cat([conv_w.flatten(1), conv_b[:, None]], 1).flatten(), olap.blocks[0]),
        (fc.flatten(), olap.blocks[1]),
    ]
    dense = (olap.importance * torch.cat([scale, shift]).square()).sum()
    for moved, block in blocks:
        dense = dense + moved @ torch.kron(block.outputs, block.inputs) @ moved / 1.7
    torch.testing.assert_close(terms["olap"], 1.5 * dense)
    parameters = list(network.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(terms["olap"], parameters),
        torch.autograd.grad(1.5 * dense, parameters),
    )


def test_factors_are_decayed_sums_over_the_tasks(build: Build) -> None:
    loop = build("finetune", {"olap": {"gamma": 0.6, "fisher": "empirical"}})
    olap, network = loop.regularizers[0], loop.network
    layers = kronecker_layers(network)
    expected = {name: [torch.zeros(()), torch.zeros(())] for name in layers}
    for task in range(3):
        move(network, seed=task)
        step = step_of(loop, task)
        data = step.batch(step.task.train.rows(torch.arange(24)), None)
        network.eval()
        for name, factors in kronecker_factors(network, layers, data.x, data.y, step.seen).items():
            for i, factor in enumerate(factors):
                expected[name][i] = 0.6 * expected[name][i] + factor / 24
        network.train()
        olap.end_task(step)
    assert olap.mass.item() == pytest.approx(0.6**2 + 0.6 + 1)
    for block, (name, factors) in zip(olap.blocks, expected.items(), strict=True):
        torch.testing.assert_close(block.inputs, factors[0], rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(block.outputs, factors[1], rtol=1e-4, atol=1e-8)
        assert torch.equal(block.mode, weight_matrix(layers[name]))


@pytest.mark.parametrize("gamma", [1.0, 0.5, 0.0])
def test_equal_tasks_add_up_like_their_kronecker_products(build: Build, gamma: float) -> None:
    """Twice the same curvature weighs 1 + γ times as much, not (1 + γ)²."""
    loop = build("finetune", {"olap": {"gamma": gamma, "fisher": "empirical"}})
    olap, step, penalties = loop.regularizers[0], step_of(loop, 0), []
    start = {name: value.clone() for name, value in loop.network.state_dict().items()}
    for _ in range(2):
        loop.network.load_state_dict(start)
        olap.end_task(step)
        move(loop.network)
        penalties.append(olap.losses(step)["olap"].item())
    assert penalties[0] > 0
    assert penalties[1] == pytest.approx((1 + gamma) * penalties[0], rel=1e-4)


@pytest.mark.parametrize("shared", ["inputs", "outputs"])
def test_tasks_that_share_a_factor_add_up_exactly(shared: str) -> None:
    """γ G₀ ⊗ A₀ + G₁ ⊗ A₁, where A₀ = A₁ or G₀ = G₁, from sums of factors and their mass alone."""
    torch.manual_seed(0)
    network, olap, gamma = nn.Linear(3, 2).double(), OLAP(weight=2.0), 0.3
    olap.attach(network)
    generator = torch.Generator().manual_seed(2)
    first, second = (
        {"inputs": covariance(4, generator), "outputs": covariance(2, generator)} for _ in range(2)
    )
    second[shared] = first[shared]
    for name, factor in zip(("inputs", "outputs"), olap.blocks[0].factors, strict=True):
        factor.copy_(gamma * first[name] + second[name])
    olap.mass.fill_(gamma + 1)
    olap.loaded()
    move(network)
    moved = (weight_matrix(network) - olap.blocks[0].mode).flatten()
    exact = gamma * torch.kron(first["outputs"], first["inputs"])
    exact = exact + torch.kron(second["outputs"], second["inputs"])
    found = olap.losses(SimpleNamespace(network=network))["olap"]
    torch.testing.assert_close(found, moved @ exact @ moved)


def test_one_row_of_a_linear_network_gives_the_dense_fisher(build: Build) -> None:
    """λ/2 (∇log p · Δ)² per layer, for the single row used."""
    loop = build("finetune", {"olap": {"samples": 1, "weight": 2.0}}, backbone="mlp")
    olap, step = loop.regularizers[0], step_of(loop, 0)
    (x, y) = next(olap._rows.batches(step))
    loop.generators.load_state_dict({})  # olap will draw the same row
    logits = loop.network(x)[:, : step.seen]
    log_p = logits.log_softmax(1)[0, y[0]]
    gradients = torch.autograd.grad(log_p, list(loop.network.parameters()))
    olap.end_task(step)
    before = [p.detach().clone() for p in loop.network.parameters()]
    move(loop.network)
    moved = [p.detach() - b for p, b in zip(loop.network.parameters(), before, strict=True)]
    slopes = [(g * m).sum().item() for g, m in zip(gradients, moved, strict=True)]
    dense = sum((slopes[i] + slopes[i + 1]) ** 2 for i in (0, 2, 4))  # weight and bias together
    assert olap.losses(step)["olap"].item() == pytest.approx(dense, rel=1e-3)


def test_batchnorm_has_the_diagonal_fisher(build: Build) -> None:
    options = {"gamma": 0.5, "fisher": "empirical"}
    loop = build("finetune", {"olap": options, "oewc": options})
    olap, oewc = loop.regularizers
    for task in range(2):
        for regularizer in (olap, oewc):
            regularizer.end_task(step_of(loop, task))
    named = list(loop.network.named_parameters())
    parts = oewc.importance.split([p.numel() for _, p in named])
    norm = [part for (name, _), part in zip(named, parts, strict=True) if ".1." in name]
    assert len(norm) == 8  # four blocks, scale and shift
    torch.testing.assert_close(olap.importance, torch.cat(norm))
    assert olap.importance.min() >= 0
    assert olap.importance.max() > 0


def test_end_of_task_leaves_the_network_as_it_was(
    build: Build, differences: Callable[..., list[str]]
) -> None:
    loop = build("finetune", {"olap": {}})
    loop.network.train()
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    loop.regularizers[0].end_task(step_of(loop, 0))
    assert differences(loop.network.state_dict(), before) == []
    assert all(module.training for module in loop.network.modules())
    assert all(p.grad is None for p in loop.network.parameters())


def test_no_term_before_a_task_is_consolidated_and_zero_at_the_mode(build: Build) -> None:
    loop = build("finetune", {"olap": {}})
    olap, step = loop.regularizers[0], step_of(loop, 0)
    assert olap.losses(step) == {}
    olap.end_task(step)
    assert olap.losses(step)["olap"].item() == 0


def test_zero_weight_computes_and_keeps_nothing(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = build("finetune", {"olap": {"weight": 0.0, "samples": 3}})
    olap, step = loop.regularizers[0], step_of(loop, 0)
    monkeypatch.setattr(loop.network, "forward", lambda x: pytest.fail("a pass was made"))
    olap.end_task(step)
    assert olap.losses(step) == {}
    assert list(olap.state_dict()) == ["mass"]
    assert loop.generators.state_dict() == {}


@pytest.mark.parametrize("options", [{}, {"fisher": "empirical", "samples": 10, "gamma": 0.9}])
def test_resumes_bit_for_bit(
    build: Build, differences: Callable[..., list[str]], options: dict[str, Any]
) -> None:
    whole = build("er-ace", {"olap": options})
    list(whole)
    first = build("er-ace", {"olap": options})
    for event in first:
        if isinstance(event, StepDone) and (event.task.index, event.batch) == (1, 1):
            break
    state = first.state_dict()
    assert state["regularizers"][0]["mass"] == 1
    second = build("er-ace", {"olap": options})
    second.load_state_dict(state)
    list(second)
    assert differences(second.state_dict(), whole.state_dict()) == []


def test_a_penalty_too_stiff_for_the_learning_rate_is_warned_about(
    build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    loop = build("finetune", {"olap": {"weight": 1e6}})
    loop.regularizers[0].start(step_of(loop, 0))
    loop.regularizers[0].end_task(step_of(loop, 0))
    assert caplog.text == ""
    loop.regularizers[0].start(step_of(loop, 1))
    steepest = 0.0
    for block in loop.regularizers[0].blocks:
        a, g = (torch.linalg.eigvalsh(factor)[-1].item() for factor in block.factors)
        steepest = max(steepest, a * g)
    assert f"a weight below {2 / (0.1 * steepest):.2g} would be safe" in caplog.text
    caplog.clear()
    loop = build("finetune", {"olap": {"weight": 1e-3}})
    loop.regularizers[0].end_task(step_of(loop, 0))
    loop.regularizers[0].start(step_of(loop, 1))
    assert caplog.text == ""
    loop = build("finetune", {"olap": {"weight": 0.5}})  # it is the product that counts
    loop.regularizers[0].end_task(step_of(loop, 0))
    for block in loop.regularizers[0].blocks:
        block.inputs.mul_(1e6)
    loop.regularizers[0].start(step_of(loop, 1))
    safe = caplog.text
    assert "would be safe" in safe
    caplog.clear()
    loop.regularizers[0].mass.mul_(4)  # after more tasks: curvature is an average over them
    loop.regularizers[0].blocks.apply(lambda b: hasattr(b, "inputs") and b.inputs.mul_(4))
    loop.regularizers[0].start(step_of(loop, 1))
    assert caplog.text == safe


def test_networks_without_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="linear layers or convolutions"):
        OLAP().attach(nn.BatchNorm2d(3))
    with pytest.raises(ValueError, match="gamma ≥ 0 and ≤ 1"):
        OLAP(gamma=-0.1)
    OEWC().attach(nn.BatchNorm2d(3))  # a diagonal has no such needs


def test_layers_that_do_more_than_their_class_are_held_by_the_diagonal() -> None:
    """An attention's `out_proj` never runs itself; a convolution may pad in its own way."""

    class Padded(nn.Conv2d):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(F.pad(x, (0, 1, 0, 1)))

    network = nn.ModuleDict(
        {"a": nn.MultiheadAttention(4, 2), "b": Padded(3, 4, 2), "c": nn.Linear(4, 2)}
    )
    assert list(kronecker_layers(network)) == ["c"]
