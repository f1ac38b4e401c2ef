"""Residual networks (He et al., 2016), with torchvision's names of parameters."""

from __future__ import annotations

from torch import Tensor, nn


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """relu(x + f(x)), f: two 3x3 convolutions. `sum` is the tap in front of that ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, outputs, 3, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = _convolution(outputs, outputs, 3)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                _convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
            )
        self.sum = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        inner = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return self.sum(inner + shortcut).relu()


class ResNet(nn.Module):
    """Stem and four layers of blocks, for small images: a 3x3 stem without pooling."""

    def __init__(
        self, blocks: tuple[int, int, int, int], classes: int, channels: int, width: int
    ) -> None:
        super().__init__()
        self.conv1 = _convolution(channels, width, 3)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for i, count in enumerate(blocks):
            outputs = width * 2**i
            layer = [
                BasicBlock(inputs if j == 0 else outputs, outputs, 2 if i > 0 and j == 0 else 1)
                for j in range(count)
            ]
            self.add_module(f"layer{i + 1}", nn.Sequential(*layer))
            inputs = outputs
        self.fc = nn.Linear(inputs, classes)
        self.taps = {"stem": "bn1"} | {
            f"layer{i + 1}": f"layer{i + 1}.{count - 1}.sum" for i, count in enumerate(blocks)
        }

    def features(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x)).relu()
        for i in range(1, 5):
            x = self.get_submodule(f"layer{i}")(x)
        return x.mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x))


def resnet18(classes: int, image_shape: tuple[int, int, int], *, width: int = 64) -> ResNet:
    """11.2 million parameters at the paper's width of 64 (100 classes)."""
    return ResNet((2, 2, 2, 2), classes, image_shape[0], width)
