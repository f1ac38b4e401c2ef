"""EfficientNets (Tan and Le, 2019), with torchvision's parameter names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import check_numbers


@dataclass(frozen=True)
class Stage:
    """A row of the paper's Table 1: inverted bottlenecks, at the size of B0."""

    expansion: int
    kernel: int
    stride: int
    channels: int
    blocks: int


STAGES = (
    Stage(1, 3, 1, 16, 1),
    Stage(6, 3, 2, 24, 2),
    Stage(6, 5, 2, 40, 2),
    Stage(6, 3, 2, 80, 3),
    Stage(6, 5, 1, 112, 3),
    Stage(6, 5, 2, 192, 4),
    Stage(6, 3, 1, 320, 1),
)
STEM, LITE_HEAD = 32, 1280  # channels of B0's stem, and of Lite0's head


@dataclass(frozen=True)
class Variant:
    """How a network differs from B0. eps, momentum: BatchNorm's, as PyTorch defines them.

    lite: ReLU6 instead of SiLU, no squeeze-and-excitation, TensorFlow's padding, as in the network
    whose published weights expect pixels (x − 127)/128, x in 0…255.
    """

    wider: float = 1.0
    deeper: float = 1.0
    dropout: float = 0.2
    eps: float = 1e-5
    momentum: float = 0.1
    lite: bool = False


VARIANTS = {
    "b0": Variant(),
    "b1": Variant(1.0, 1.1),
    "b2": Variant(1.1, 1.2, 0.3),
    "b3": Variant(1.2, 1.4, 0.3),
    "b4": Variant(1.4, 1.8, 0.4),
    "b5": Variant(1.6, 2.2, 0.4, 1e-3, 0.01),
    "b6": Variant(1.8, 2.6, 0.5, 1e-3, 0.01),
    "b7": Variant(2.0, 3.1, 0.5, 1e-3, 0.01),
    "lite0": Variant(1.0, 1.0, 0.2, 1e-3, 0.01, lite=True),
}


def divisible(channels: float) -> int:
    """Round to a multiple of 8, at least 8, and not below nine tenths of the argument.

    >>> [divisible(channels) for channels in (3, 17.6, 35.2, 44)]
    [8, 16, 32, 48]
    """
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding: the odd pixel goes below and right."""

    def forward(self, x: Tensor) -> Tensor:
        sizes = zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True)
        missing = [max((-(-n // stride) - 1) * stride + k - n, 0) for n, k, stride in sizes]
        padded = F.pad(x, [side for m in missing for side in (m // 2, m - m // 2)])
        return self._conv_forward(padded, self.weight, self.bias)


def layer(
    variant: Variant, inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """Convolution and BatchNorm, without an activation."""
    convolution: nn.Conv2d
    if variant.lite and kernel > 1:
        convolution = SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
    else:
        convolution = nn.Conv2d(
            inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False
        )
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs, variant.eps, variant.momentum))


def active_layer(variant: Variant, *args: int, **options: int) -> nn.Sequential:
    """Convolution, BatchNorm and activation."""
    return layer(variant, *args, **options).append(nn.ReLU6() if variant.lite else nn.SiLU())


class SqueezeExcite(nn.Module):
    """x · σ(W₂ silu(W₁ mean(x))), channel by channel (Hu et al., 2018)."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.fc2(F.silu(self.fc1(x.mean((2, 3), keepdim=True)))).sigmoid()


class MBConv(nn.Module):
    """x + f(x) if the shapes agree, else f(x). f: expand, convolve each channel, excite, project.

    It ends without an activation: its output is the map of a stage.
    """

    def __init__(
        self, inputs: int, outputs: int, stage: Stage, stride: int, variant: Variant, drop: float
    ) -> None:
        super().__init__()
        inner = inputs * stage.expansion
        inner = inner if stage.expansion == 1 else divisible(inner)
        layers = [] if stage.expansion == 1 else [active_layer(variant, inputs, inner, 1)]
        layers += [active_layer(variant, inner, inner, stage.kernel, stride=stride, groups=inner)]
        squeeze = [] if variant.lite else [SqueezeExcite(inner, max(1, inputs // 4))]
        self.block = nn.Sequential(*layers, *squeeze, layer(variant, inner, outputs, 1))
        self.residual = stride == 1 and inputs == outputs
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.block(x)
        if not self.residual:
            return inner
        if self.training and self.drop > 0:  # stochastic depth (Huang et al., 2016), per sample
            kept = torch.rand(len(x), 1, 1, 1, device=x.device) >= self.drop
            inner = inner * kept / (1 - self.drop)
        return x + inner


class Features(nn.Sequential):
    """The stages in sequence, then the mean over positions: (n, C, H, W) to (n, d)."""

    def forward(self, x: Tensor) -> Tensor:
        for stage in self:
            x = stage(x)
        return x.mean((2, 3))


class EfficientNet(nn.Module):
    """Stem, seven stages of inverted bottlenecks, a 1x1 head.

    Its taps are those of the released code: stem and head before their activation, and the first
    six stages; the seventh ("features.7") has the resolution of the head.
    """

    def __init__(
        self,
        classes: int,
        channels: int,
        variant: Variant,
        width: int,
        dropout: float,
        stochastic_depth: float,
    ) -> None:
        super().__init__()
        check_numbers(width=width, at_least=1, at_most=2**20, whole=True)
        check_numbers(dropout=dropout, stochastic_depth=stochastic_depth, at_least=0, below=1)
        factor = variant.wider * width / STEM
        stem, *outputs = (divisible(factor * c) for c in (STEM, *(s.channels for s in STAGES)))
        head = divisible(factor * LITE_HEAD) if variant.lite else 4 * outputs[-1]
        depths = [math.ceil(variant.deeper * stage.blocks) for stage in STAGES]
        self.features = Features(active_layer(variant, channels, stem, 3, stride=2))
        inputs, number = stem, 0
        for stage, output, depth in zip(STAGES, outputs, depths, strict=True):
            blocks = nn.Sequential()
            for j in range(depth):
                drop = stochastic_depth * number / sum(depths)
                stride = stage.stride if j == 0 else 1
                blocks.append(MBConv(inputs, output, stage, stride, variant, drop))
                inputs, number = output, number + 1
            self.features.append(blocks)
        self.features.append(active_layer(variant, inputs, head, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(head, classes))
        self.taps = {
            "stem": "features.0.1",
            **{f"stage{i}": f"features.{i}" for i in range(1, 7)},
            "head": "features.8.1",
        }

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x))


def _maker(variant: Variant) -> Callable[..., EfficientNet]:
    def make(
        classes: int,
        image_shape: tuple[int, int, int],
        *,
        width: int = STEM,
        dropout: float = variant.dropout,
        stochastic_depth: float = 0.2,
    ) -> EfficientNet:
        """width: channels of B0's stem, 32 in the paper; all other layers keep their ratio to it.

        dropout: of the features. stochastic_depth: probability of skipping the last block in
        training, growing linearly from 0 at the first.
        """
        return EfficientNet(classes, image_shape[0], variant, width, dropout, stochastic_depth)

    return make


b0, b1, b2, b3, b4, b5, b6, b7, lite0 = (_maker(variant) for variant in VARIANTS.values())
