"""Residual networks (He et al., 2016), with torchvision's parameter names."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from ..errors import check_numbers, unknown

Stem = Literal["cifar", "imagenet"]


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    """A projection of x to the shape of f(x), or None if they agree."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(_convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    """relu(x + f(x)), f: two 3x3 convolutions. `sum` is the tap before that ReLU."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _convolution(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(inputs, width, stride)
        self.sum = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        inner = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return self.sum(inner + shortcut).relu()


class Bottleneck(nn.Module):
    """relu(x + f(x)), f: 1x1, 3x3, 1x1 to four times the width. The stride is in the 3x3 (v1.5)."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _convolution(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _convolution(width, 4 * width, 1)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = _shortcut(inputs, 4 * width, stride)
        self.sum = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        inner = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())).relu()
        return self.sum(self.bn3(self.conv3(inner)) + shortcut).relu()


class ResNet(nn.Module):
    """Stem and four layers of blocks.

    stem: "cifar", a 3x3 convolution, keeps the size of small images; "imagenet", a 7x7 convolution
    and pooling, divides the size of large ones by four.
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        blocks: tuple[int, int, int, int],
        classes: int,
        channels: int,
        width: int,
        stem: Stem,
    ) -> None:
        super().__init__()
        check_numbers(width=width, at_least=1, at_most=2**20, whole=True)
        if stem not in (allowed := ("cifar", "imagenet")):
            raise unknown("stem", str(stem), allowed)
        large = stem == "imagenet"
        self.conv1 = (
            _convolution(channels, width, 7, 2) if large else _convolution(channels, width, 3)
        )
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1) if large else nn.Identity()
        inputs = width
        for i, count in enumerate(blocks):
            layer = nn.Sequential()
            for j in range(count):
                layer.append(block(inputs, width * 2**i, 2 if i > 0 and j == 0 else 1))
                inputs = width * 2**i * block.expansion
            self.add_module(f"layer{i + 1}", layer)
        self.fc = nn.Linear(inputs, classes)
        self.taps = {"stem": "bn1"} | {
            f"layer{i + 1}": f"layer{i + 1}.{count - 1}.sum" for i, count in enumerate(blocks)
        }

    def features(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        for i in range(1, 5):
            x = self.get_submodule(f"layer{i}")(x)
        return x.mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x))


def resnet18(
    classes: int, image_shape: tuple[int, int, int], *, width: int = 64, stem: Stem = "cifar"
) -> ResNet:
    """11.2 million parameters at the paper's width of 64 (100 classes)."""
    return ResNet(BasicBlock, (2, 2, 2, 2), classes, image_shape[0], width, stem)


def resnet50(
    classes: int, image_shape: tuple[int, int, int], *, width: int = 64, stem: Stem = "imagenet"
) -> ResNet:
    """23.9 million parameters at the paper's width of 64 (200 classes)."""
    return ResNet(Bottleneck, (3, 4, 6, 3), classes, image_shape[0], width, stem)
