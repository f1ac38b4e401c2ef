"""Replay steps of a small vision transformer, with each form of LiDER."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..analysis.interleaved_timing import Action
from ..backbones.vit import ViT
from ..regularizers.lider import LiDER
from .workloads import CLASSES, LIDER_OPTIONS

PATCH, WIDTH, BLOCKS = 4, 96, 4
STAGES = ["patches", *(f"blocks.{i}" for i in range(BLOCKS))]


class SmallViT(nn.Module):
    """Encoder layers on the patches of an image, without dropout."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.position = nn.Parameter(torch.zeros(1, (side // PATCH) ** 2, WIDTH))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, 0.0, batch_first=True, norm_first=True)
            for _ in range(BLOCKS)
        )
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).mT + self.position
        for block in self.blocks:
            tokens = block(tokens)
        logits: Tensor = self.head(tokens.mean(1))
        return logits


def replay_steps(rows: int = 64, side: int = 32) -> dict[str, Action]:
    """One step on replayed images (forward, backward, SGD) for each form of LiDER."""
    x, y = torch.rand(rows, 3, side, side), torch.arange(rows) % CLASSES
    return {
        form: replay_step(SmallViT(side), STAGES, LIDER_OPTIONS[form], x, y)
        for form in ("without", "spatial", "batch", "jacobian")
    }


def preset_steps(rows: int = 64, side: int = 32) -> dict[str, Action]:
    """The same for the network of the preset cifar100-vit, without LiDER and with its default."""
    x, y = torch.rand(rows, 3, side, side), torch.arange(rows) % CLASSES
    options: Any = {"width": 96, "depth": 6, "heads": 3, "patch": 4, "pool": "mean"}
    networks = {form: ViT(CLASSES, (3, side, side), **options) for form in ("without", "spatial")}
    return {
        form: replay_step(network, None, LIDER_OPTIONS[form], x, y)
        for form, network in networks.items()
    }


def replay_step(
    network: nn.Module,
    stages: Sequence[str] | None,
    options: dict[str, Any] | None,
    x: Tensor,
    y: Tensor,
) -> Action:
    """A step of any network on one batch. options: of LiDER; None: without it."""
    lider = None if options is None else LiDER(network, stages, 0.01, 0.01, **options)
    groups = [] if lider is None else lider.param_groups()
    optimizer = torch.optim.SGD([{"params": network.parameters()}, *groups], lr=0.001)

    def step() -> None:
        if lider is None:
            loss = F.cross_entropy(network(x), y)
        else:
            with lider.watch():
                logits = network(x)
            loss = F.cross_entropy(logits, y) + lider.penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
