"""The rule of the nearest class mean, by which iCaRL and NCM classify."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from ..backbones.network import Network


class NearestMean(nn.Module):
    """Scores classes by −‖φ(x) − μ_c‖; −∞ for a class without a mean.

    means: (c, d). known: (c,) mask.
    """

    means: Tensor
    known: Tensor

    def __init__(self, network: Network, means: Tensor, known: Tensor, normalize: bool) -> None:
        super().__init__()
        self.network, self.normalize = network, normalize
        self.register_buffer("means", means)
        self.register_buffer("known", known)

    def forward(self, x: Tensor) -> Tensor:
        features = unit(self.network.features(x), self.normalize)
        if torch.compiler.is_compiling():  # exporters have no cdist; this takes more memory
            distance = (features[:, None] - self.means).norm(dim=2)
        else:  # not by a matrix product, whose rounding error could decide between near means
            distance = torch.cdist(
                features, self.means, compute_mode="donot_use_mm_for_euclid_dist"
            )
        return (-distance).masked_fill(~self.known, -torch.inf)


def unit(features: Tensor, normalize: bool) -> Tensor:
    return F.normalize(features) if normalize else features
