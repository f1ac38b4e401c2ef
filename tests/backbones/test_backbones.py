"""Shapes, names of parameters, taps, and frozen copies."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.backbones import BACKBONES
from liderlab.backbones.mlp import MLP
from liderlab.backbones.network import Network
from liderlab.backbones.resnet import resnet18
from liderlab.regularizers.lider import LiDER

# The larger EfficientNets are B0's code with other numbers.
NAMES = [name for name in BACKBONES if not re.fullmatch("efficientnet-b[1-9]", name)]
WITH_RELU = ["mlp", "convnet-small", "resnet18", "resnet50"]


def make(name: str, image_shape: tuple[int, int, int] = (3, 8, 8)) -> Any:
    return BACKBONES.load(name)(7, image_shape, width=4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("image_shape", [(3, 8, 8), (1, 9, 12)])
def test_one_logit_per_class_from_the_features(
    name: str, image_shape: tuple[int, int, int]
) -> None:
    network = make(name, image_shape).double().eval()
    x = torch.randn(5, *image_shape, dtype=torch.float64, generator=torch.Generator())
    features = network.features(x)
    assert features.dim() == 2
    assert network(x).shape == (5, 7)
    last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
    by_hand = features @ last.weight.T + last.bias
    assert torch.allclose(network(x), by_hand)


def tapped(network: Any, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The output of every tap, in running order, and the features."""
    seen: dict[str, Tensor] = {}

    def note(stage: str) -> Any:
        return lambda module, args, output: seen.__setitem__(stage, output)

    for stage, path in network.taps.items():
        network.get_submodule(path).register_forward_hook(note(stage))
    return seen, network.features(x)


@pytest.mark.parametrize("name", NAMES)
def test_stages_are_listed_in_running_order(name: str) -> None:
    network = make(name).eval()
    seen, _ = tapped(network, torch.randn(6, 3, 8, 8, generator=torch.Generator()))
    assert list(seen) == list(network.taps)


@pytest.mark.parametrize("name", WITH_RELU)
def test_a_stage_is_tapped_before_its_relu(name: str) -> None:
    seen, features = tapped(make(name), torch.randn(6, 3, 8, 8, generator=torch.Generator()))
    assert all((output < 0).any() for output in seen.values())
    last = list(seen.values())[-1].relu()
    assert torch.allclose(features, last.flatten(2).mean(2) if last.dim() == 4 else last)


def resnet18_shapes(width: int, classes: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """torchvision's names by their rule, with the 3x3 stem for small images."""

    def batch_norm(name: str, n: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        for part in ("weight", "bias", "running_mean", "running_var"):
            yield f"{name}.{part}", (n,)
        yield f"{name}.num_batches_tracked", ()

    yield "conv1.weight", (width, 3, 3, 3)
    yield from batch_norm("bn1", width)
    for layer in (1, 2, 3, 4):
        n = width * 2 ** (layer - 1)
        for block in (0, 1):
            before = n // 2 if layer > 1 and block == 0 else n
            prefix = f"layer{layer}.{block}"
            yield f"{prefix}.conv1.weight", (n, before, 3, 3)
            yield from batch_norm(f"{prefix}.bn1", n)
            yield f"{prefix}.conv2.weight", (n, n, 3, 3)
            yield from batch_norm(f"{prefix}.bn2", n)
            if before != n:
                yield f"{prefix}.downsample.0.weight", (n, before, 1, 1)
                yield from batch_norm(f"{prefix}.downsample.1", n)
    yield "fc.weight", (classes, 8 * width)
    yield "fc.bias", (classes,)


def test_resnet18_has_torchvisions_names_and_shapes() -> None:
    state = resnet18(100, (3, 32, 32)).state_dict()
    assert {name: tuple(v.shape) for name, v in state.items()} == dict(resnet18_shapes(64, 100))
    assert len(state) == 122  # as in torchvision's published files


def test_resnet18_has_as_many_parameters_as_the_papers_network() -> None:
    network = resnet18(100, (3, 32, 32))
    # torchvision's 11,689,512 for 1000 classes: a 3x3 stem instead of 7x7, 100 classes.
    expected = 11_689_512 - 64 * 3 * (49 - 9) - 900 * 513
    assert sum(p.numel() for p in network.parameters()) == expected == 11_220_132


def test_resnet18_halves_the_map_three_times() -> None:
    network = resnet18(10, (3, 32, 32), width=2)
    shapes = []
    for stage in network.taps.values():
        network.get_submodule(stage).register_forward_hook(
            lambda module, args, output: shapes.append(tuple(output.shape[1:]))
        )
    network(torch.zeros(2, 3, 32, 32))
    assert shapes == [(2, 32, 32), (2, 32, 32), (4, 16, 16), (8, 8, 8), (16, 4, 4)]


def test_a_residual_block_adds_its_input() -> None:
    block = resnet18(10, (3, 8, 8), width=2).get_submodule("layer1.0")
    nn.init.zeros_(block.bn2.weight)  # type: ignore[union-attr, arg-type]
    x = torch.randn(3, 2, 8, 8, generator=torch.Generator())
    assert torch.equal(block(x), x.relu())


@pytest.mark.parametrize("name", NAMES)
def test_the_networks_taps_lead_to_the_backbones_modules(name: str) -> None:
    backbone = make(name)
    network = Network(backbone)
    for stage, path in network.taps.items():
        assert network.get_submodule(path) is backbone.get_submodule(backbone.taps[stage])


def test_a_readout_follows_the_backbone() -> None:
    readout = nn.Linear(7, 2)
    network = Network(make("mlp"), readout)
    x = torch.randn(5, 3, 8, 8, generator=torch.Generator())
    assert torch.equal(network(x), readout(network.backbone(x)))
    assert torch.equal(network.features(x), network.backbone.features(x))  # type: ignore[operator]


def test_a_frozen_copy_is_independent() -> None:
    network = Network(make("convnet-small")).train()
    copy = network.frozen_copy()
    x = torch.randn(5, 3, 8, 8, generator=torch.Generator())
    before = copy(x)
    assert network.training
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert not any(module.training for module in copy.modules())
    assert not before.requires_grad
    network(x).sum().backward()
    with torch.no_grad():
        for value in network.state_dict().values():
            value.add_(1)
    assert torch.equal(copy(x), before)
    assert all(parameter.grad is None for parameter in copy.parameters())


def test_a_frozen_copy_is_not_recorded() -> None:
    network = Network(make("convnet-small"))
    lider = LiDER(network)
    x = torch.randn(5, 3, 8, 8, generator=torch.Generator())
    copy = network.frozen_copy()
    lider.calibrate([x])
    penalties = []
    for others in ([], [x.flip(0), x * 2]):
        with lider.watch():
            for other in others:
                copy(other)
            network(x)
        penalties.append(lider.penalty().item())
    assert penalties[0] == penalties[1] > 0


def test_the_mlp_takes_any_image_shape() -> None:
    assert MLP(3, (2, 5, 4), width=6)(torch.zeros(1, 2, 5, 4)).shape == (1, 3)
