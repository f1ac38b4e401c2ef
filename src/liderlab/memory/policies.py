"""What a memory keeps."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..functional.sampling import rank_in_class, reservoir_slots
from .memory import Column, Memory


class Reservoir:
    """Every sample offered so far is stored with the same probability."""

    columns: Mapping[str, Column] = {}

    def choose(
        self, memory: Memory, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return reservoir_slots(memory.seen, len(y), memory.size, generator), {}


class ClassBalanced:
    """Equal shares for all classes, and within a class every sample with the same probability.

    Each sample gets a random key. Kept are the lowest ranks by key within each class, which fills
    the shares evenly (a class with few samples leaves its room to the others) and makes each
    class's part the largest keys of all its samples so far: a uniform sample of them.
    """

    columns: Mapping[str, Column] = {"key": Column((), torch.float64)}

    def choose(
        self, memory: Memory, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        stored, n = memory.filled, len(y)
        key = torch.rand(n, dtype=torch.float64, generator=generator)
        all_y = torch.cat([memory.data["y"][:stored], y])
        all_key = torch.cat([memory.data["key"][:stored], key])
        by_key = all_key.argsort(descending=True)  # breaks ties between classes at random
        rank = rank_in_class(all_y, all_key)[by_key]
        kept = by_key[rank.argsort(stable=True)[: memory.size]]
        stays = torch.zeros(stored + n, dtype=torch.bool)
        stays[kept] = True
        free = torch.cat([(~stays[:stored]).nonzero()[:, 0], torch.arange(stored, memory.size)])
        slots = torch.full((n,), -1)
        enters = stays[stored:]
        slots[enters] = free[: int(enters.sum())]
        return slots, {"key": key}
