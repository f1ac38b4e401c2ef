"""Spectral regularisation: its value, its gradient, the layers that it takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.func import jacrev

from liderlab.backbones.convnet import ConvNet
from liderlab.functional.spectral import power_iteration, weight_map
from liderlab.regularizers.spectral import Spectral
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop

Build = Callable[..., Loop]


def dense_norms(network: nn.Module, side: int) -> list[torch.Tensor]:
    """σ₁ of every layer of a ConvNet, from its matrix."""
    norms, sides = [], {"block1": side, "block2": side, "block3": side // 2, "block4": side // 2}
    for name, size in sides.items():
        layer = network.get_submodule(name)[0]  # type: ignore[index]
        apply, shape = weight_map(layer), (layer.in_channels, size, size)
        assert apply is not None
        zeros = torch.zeros(1, *shape, dtype=torch.float64)
        matrix = jacrev(apply)(zeros).reshape(-1, zeros.numel())
        norms.append(torch.linalg.svdvals(matrix)[0])
    return [*norms, torch.linalg.svdvals(network.fc.weight)[0]]  # type: ignore[arg-type]


def test_the_term_is_that_of_the_dense_matrices(build: Build) -> None:
    """In the loop, after enough iterations: value and gradient, all layers."""
    loop = build("finetune", {"spectral": {"weight": 0.5, "iterations": 400}})
    (spectral,) = loop.regularizers
    loop.network.double()
    spectral.double()
    step = loop._step(loop.stream.tasks[0], loop._plan(loop.stream.tasks[0])[0], 0)
    spectral.start(step)
    term = spectral.losses(step)["spectral"]
    norms = torch.stack(dense_norms(loop.network.backbone, 8))
    truth = 0.5 * (norms - 1).square().sum()
    torch.testing.assert_close(term, truth, rtol=1e-6, atol=0)
    weights = [p for p in loop.network.parameters() if p.dim() > 1]
    assert len(weights) == len(norms) == 5
    for ours, theirs in zip(
        torch.autograd.grad(term, weights), torch.autograd.grad(truth, weights), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_norms_move_towards_one(build: Build) -> None:
    def distance(weight: float) -> float:
        loop = build("er", {"spectral": {"weight": weight}}, epochs=6)
        assert all(loop)
        norms = torch.stack(dense_norms(loop.network.double().backbone, 8))
        return float((norms - 1).detach().abs().max())

    assert distance(0.05) < distance(0.0) / 3


def test_few_iterations_a_step_follow_the_weights(build: Build) -> None:
    """σ₁ is never overestimated and by at most 15 % underestimated, while the weights move fast."""
    loop = build("er", {"spectral": {"weight": 0.01, "iterations": 3}}, epochs=3)
    (spectral,) = loop.regularizers
    assert isinstance(spectral, Spectral)
    for event in loop:
        if isinstance(event, StepDone):
            exact = torch.stack(dense_norms(loop.network.double().backbone, 8)).detach()
            loop.network.float()
            pairs = zip(spectral._maps, spectral.buffers(), strict=True)
            found = torch.stack([apply(power_iteration(apply, v, 3)).norm() for apply, v in pairs])
            assert (found < exact * (1 + 1e-5)).all()
            assert (found > exact * 0.85).all()


def test_frozen_layers_are_left_out_and_none_at_all_is_refused() -> None:
    network = ConvNet(4, (3, 8, 8), width=4)
    network.block1.requires_grad_(False)
    spectral = Spectral()
    spectral.attach(network, torch.zeros(2, 3, 8, 8))
    assert [tuple(v.shape[1:]) for v in spectral.buffers()] == [
        (4, 8, 8),
        (4, 4, 4),
        (8, 4, 4),
        (8,),
    ]
    with pytest.raises(ValueError, match="no linear layer or convolution"):
        Spectral().attach(network.requires_grad_(False), torch.zeros(2, 3, 8, 8))


def test_one_vector_is_kept_for_each_layer() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 5))
    spectral = Spectral()
    spectral.attach(network, torch.zeros(2, 3, 8, 8))
    assert [tuple(vector.shape) for vector in spectral.buffers()] == [(1, 3, 8, 8), (1, 144)]
