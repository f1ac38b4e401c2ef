"""A problem small enough to know the answers: two noisy clouds per class, and networks for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Data = tuple[Tensor, Tensor]


@pytest.fixture(scope="session")
def clouds() -> Callable[..., Data]:
    """n samples (n, 1, 4, 4) of `classes` classes, pixels around 0.5; hard to tell if noise is."""

    def clouds(n: int = 120, *, classes: int = 4, noise: float = 0.1, seed: int = 0) -> Data:
        patterns = torch.rand(classes, 1, 4, 4, generator=torch.Generator().manual_seed(99))
        generator = torch.Generator().manual_seed(seed)
        y = torch.arange(n) % classes
        spread = noise * torch.randn(n, 1, 4, 4, generator=generator)
        return (0.3 + 0.4 * patterns[y] + spread).clamp(0, 1), y

    return clouds


@pytest.fixture(scope="session")
def train() -> Callable[..., nn.Module]:
    """A small network fitted to data, in eval mode: the same arguments give the same network."""

    def train(data: Data, *, steps: int = 200, width: int = 64, seed: int = 0) -> nn.Module:
        x, y = data
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = nn.Sequential(
                nn.Flatten(), nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 4)
            )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        return model.eval()

    return train
