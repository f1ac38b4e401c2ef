"""The parts of an EfficientNet against their formulas."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from liderlab.backbones import BACKBONES
from liderlab.backbones.efficientnet import (
    STAGES,
    MBConv,
    SameConv2d,
    SqueezeExcite,
    Variant,
    b2,
    lite0,
)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_squeeze_and_excite() -> None:
    layer = SqueezeExcite(6, 2).double()
    x = randn(3, 6, 4, 5)
    w1, w2 = layer.fc1.weight[:, :, 0, 0], layer.fc2.weight[:, :, 0, 0]
    inner = F.silu(x.mean((2, 3)) @ w1.T + layer.fc1.bias)
    weights = torch.sigmoid(inner @ w2.T + layer.fc2.bias)
    assert torch.allclose(layer(x), x * weights[:, :, None, None])


@pytest.mark.parametrize(
    ("side", "kernel", "stride", "before", "after"),
    [(8, 3, 2, 0, 1), (9, 3, 2, 1, 1), (8, 5, 2, 1, 2), (7, 5, 1, 2, 2), (1, 3, 2, 1, 1)],
)
def test_tensorflows_padding(side: int, kernel: int, stride: int, before: int, after: int) -> None:
    """The sides' padding by TensorFlow's definition of SAME: the odd pixel comes last."""
    layer = SameConv2d(2, 3, kernel, stride, bias=False).double()
    x = randn(2, 2, side, side)
    expected = F.conv2d(F.pad(x, [before, after] * 2), layer.weight, stride=stride)
    assert torch.equal(layer(x), expected)
    assert layer(x).shape[2] == -(-side // stride)


def block(drop: float) -> MBConv:
    return MBConv(8, 8, STAGES[1], 1, Variant(), drop).double()


def test_a_block_adds_its_input_if_shapes_agree() -> None:
    network = block(0.0).eval()
    x = randn(3, 8, 5, 5)
    assert torch.equal(network(x), x + network.block(x))
    strided = MBConv(8, 8, STAGES[1], 2, Variant(), 0.0).double().eval()
    assert torch.equal(strided(x), strided.block(x))


def test_stochastic_depth_leaves_samples_out_and_keeps_the_mean() -> None:
    network = block(0.25).eval()
    x = randn(1, 8, 3, 3).repeat(400, 1, 1, 1)
    whole = network(x) - x
    network.training = True  # the block's BatchNorm stays in eval mode
    with torch.random.fork_rng():
        torch.manual_seed(0)
        change = network(x) - x
    left_out = (change == 0).flatten(1).all(1)
    assert 70 <= int(left_out.sum()) <= 130  # 100 ± 3.5 standard deviations
    assert torch.allclose(change[~left_out], whole[~left_out] / 0.75)


def test_the_stages_are_those_of_the_released_code() -> None:
    """Released for B2: stem, the blocks 1, 4, 7, 11, 15 and 20, head; two blocks have no tap."""
    network = b2(10, (3, 64, 64), width=8)
    last, blocks = {}, -1
    for stage in range(1, 8):
        blocks += len(network.get_submodule(f"features.{stage}"))  # type: ignore[arg-type]
        last[f"features.{stage}"] = blocks
    assert list(network.taps) == ["stem", *(f"stage{i}" for i in range(1, 7)), "head"]
    watched = [last[network.taps[f"stage{i}"]] for i in range(1, 7)]
    assert watched == [1, 4, 7, 11, 15, 20]


def test_lite0_has_as_many_parameters_as_published() -> None:
    with torch.device("meta"):
        network = lite0(1000, (3, 224, 224))
    assert sum(p.numel() for p in network.parameters()) == 4_652_008
    assert not any(isinstance(module, SqueezeExcite) for module in network.modules())


@pytest.mark.parametrize("name", ["efficientnet-b0", "efficientnet-lite0"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width ≥ 1"),
        ({"dropout": 1.0}, "dropout ≥ 0"),
        ({"stochastic_depth": -0.1}, "stochastic_depth ≥ 0"),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BACKBONES.load(name)(3, (3, 8, 8), **options)
