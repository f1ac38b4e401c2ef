"""A network small enough to work out LiDER by hand, with samples for it."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from liderlab.functional.lipschitz import batch_lipschitz, spatial_lipschitz

STAGES = ["1", "3"]
ESTIMATES = {"spatial": spatial_lipschitz, "batch": batch_lipschitz}


def network(seed: int = 0, channels: int = 3) -> nn.Sequential:
    """Stage "1" stands in front of an in-place ReLU, stage "3" in front of a plain one."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(channels, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(inplace=True),
            nn.Conv2d(6, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(12, 5),
        )


def images(n: int = 4, seed: int = 0, channels: int = 3, size: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, channels, size, size, generator=generator)


def labels(n: int = 4) -> Tensor:
    return torch.arange(n) % 5


def maps(model: nn.Sequential, x: Tensor) -> list[Tensor]:
    """Input and stages of `network()`, by hand."""
    first = model[1](model[0](x))
    return [x, first, model[3](first.relu())]


def by_hand(
    model: nn.Sequential,
    x: Tensor,
    estimator: str = "spatial",
    **options: object,
) -> Tensor:
    """λ: (n, K), or (1, K) for the batch form."""
    chain = maps(model, x)
    values = [ESTIMATES[estimator](a, b, **options) for a, b in pairwise(chain)]
    return torch.stack([value.reshape(-1) for value in values], dim=1)
