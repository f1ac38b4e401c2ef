"""The trained network: a backbone, and the method's readout on top of it."""

from __future__ import annotations

from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn


class Network(nn.Module):
    """readout(backbone(x)); the readout of most methods is the identity."""

    def __init__(self, backbone: nn.Module, readout: nn.Module | None = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.readout = nn.Identity() if readout is None else readout

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.readout(self.backbone(x)))

    def features(self, x: Tensor) -> Tensor:
        """(n, d): the input of the backbone's last layer."""
        return cast(Tensor, self.backbone.features(x))  # type: ignore[operator]

    @property
    def taps(self) -> dict[str, str]:
        """The backbone's stages, with the paths of their modules in this network."""
        taps = cast(dict[str, str], self.backbone.taps)
        return {stage: f"backbone.{path}" for stage, path in taps.items()}

    def frozen_copy(self) -> Network:
        """A copy with the present weights, in eval mode and without gradients."""
        return deepcopy(self).eval().requires_grad_(False)


def in_fast_layout(network: Network) -> Network:
    """Convert the network to channels_last, which speeds up its convolutions (1.1x on CPUs).

    A network with a strided 1x1 convolution of fewer than 8 channels is left alone: in this layout
    the backward pass of torch's CPU kernel for it writes out of bounds (torch 2.13).
    """
    for module in network.modules():
        if (
            isinstance(module, nn.Conv2d)
            and module.kernel_size == (1, 1)
            and module.stride != (1, 1)
            and module.in_channels < 8
        ):
            return network
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
