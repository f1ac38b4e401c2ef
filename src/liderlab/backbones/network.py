"""What a run trains: a backbone and the method's readout on top of it."""

from __future__ import annotations

from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn


class Network(nn.Module):
    """readout(backbone(x)); most methods read the logits as they are."""

    def __init__(self, backbone: nn.Module, readout: nn.Module | None = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.readout = nn.Identity() if readout is None else readout

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.readout(self.backbone(x)))

    def features(self, x: Tensor) -> Tensor:
        """(n, d): what the backbone's last layer sees."""
        return cast(Tensor, self.backbone.features(x))  # type: ignore[operator]

    @property
    def taps(self) -> dict[str, str]:
        """The backbone's stages, by the path of their modules from here."""
        taps = cast(dict[str, str], self.backbone.taps)
        return {stage: f"backbone.{path}" for stage, path in taps.items()}

    def frozen_copy(self) -> Network:
        """The network as it is now: eval mode, no gradient; hooks on the copy are inert."""
        return deepcopy(self).eval().requires_grad_(False)


def in_fast_layout(network: Network) -> Network:
    """The network in channels_last, which makes its convolutions faster (1.1x on CPUs).

    Not if it has a strided 1x1 convolution of fewer than 8 channels: the backward pass of torch's
    CPU kernel for those writes outside its memory in this layout (seen in torch 2.13).
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
