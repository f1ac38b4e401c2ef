"""Policies: which samples of the stream a memory keeps."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..errors import UserError
from ..functional.sampling import reservoir_slots
from .buffer import Choice, Column, Memory


class Reservoir:
    """Every sample offered so far is stored with the same probability."""

    columns: Mapping[str, Column] = {}

    def choose(self, memory: Memory, y: Tensor, generator: torch.Generator) -> Choice:
        return reservoir_slots(memory.seen, len(y), memory.size, generator), {}


class ClassBalanced:
    """Equal quotas for all classes, and within a class every sample with the same probability.

    Each sample gets a random key, and the largest keys of each class stay: a uniform sample of the
    class's samples so far.
    """

    columns: Mapping[str, Column] = {"key": Column((), torch.float64)}

    def choose(self, memory: Memory, y: Tensor, generator: torch.Generator) -> Choice:
        key = torch.rand(len(y), dtype=torch.float64, generator=generator)
        return _balanced_slots(memory, y, key), {"key": key}


class GreedyBalanced:
    """Equal quotas for all classes, and within a class first come, first kept (GDumb).

    A full class takes nothing more; if a new class needs room, the largest class gives up its
    latest sample. Slots that do not divide evenly go to the classes that came first.
    """

    columns: Mapping[str, Column] = {"key": Column((), torch.float64)}

    def choose(self, memory: Memory, y: Tensor, generator: torch.Generator) -> Choice:
        key = -torch.arange(memory.seen, memory.seen + len(y), dtype=torch.float64)
        return _balanced_slots(memory, y, key), {"key": key}


class Herding:
    """Exemplars whose mean is nearest to their class's mean, chosen at the end of a task.

    It takes nothing from the stream: the method chooses by features (`herding_order`) and stores
    its choice with `Memory.rebuild`.
    """

    columns: Mapping[str, Column] = {}

    def choose(self, memory: Memory, y: Tensor, generator: torch.Generator) -> Choice:
        raise UserError(
            "the herding memory is filled at the end of a task, but this method fills it from the "
            "stream: choose reservoir, class-balanced or greedy-balanced"
        )


def _balanced_slots(memory: Memory, y: Tensor, key: Tensor) -> Tensor:
    """Slots for the offered rows, under equal quotas; unused room of a small class is shared."""
    enter, vacated = memory.quotas.admit(y.cpu().numpy(), key.numpy(), memory.size)
    free = [*sorted(vacated), *range(memory.filled, memory.filled + len(enter) - len(vacated))]
    slots = torch.full((len(y),), -1)
    slots[torch.from_numpy(enter)] = torch.tensor(free, dtype=torch.int64)
    return slots
