"""Domain-incremental streams: the same classes in every task, seen in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from ..errors import UserError, check_numbers
from ..types import Task
from .splitting import SplitStream

Look = Callable[[Tensor], Tensor]
"""From pixels to the same pixels in a domain: (n, C, H, W) uint8 to the same shape and type."""


def join_domains(parts: Sequence[SplitStream]) -> SplitStream:
    """One stream whose tasks are these streams, each of one task with the same classes."""
    first = parts[0]
    for number, part in enumerate(parts, 1):
        if list(part.names) != list(first.names):
            odd = sorted(set(part.names) ^ set(first.names))
            raise UserError(
                f"domain {number} has other classes than the first one "
                f"({', '.join(odd[:5])}): every domain needs the same classes"
            )
    tasks = [_renumbered(part.tasks[0], index) for index, part in enumerate(parts)]
    return replace(first, tasks=tasks, setting="domain-incremental")


def _renumbered(task: Task, index: int) -> Task:
    train, test = (_changed(data, task=index) for data in (task.train, task.test))
    return replace(task, index=index, train=train, test=test)


def in_domains(whole: SplitStream, looks: Sequence[Look]) -> SplitStream:
    """A stream of one task, seen through each of these looks in turn."""
    task = whole.tasks[0]
    parts = [
        replace(task, train=_changed(task.train, look=look), test=_changed(task.test, look=look))
        for look in looks
    ]
    return join_domains([replace(whole, tasks=[part]) for part in parts])


def _changed(data: Any, **fields: Any) -> Any:
    """The data of a task with other values; `split` makes a dataclass of it."""
    return replace(data, **fields)


@dataclass(frozen=True)
class Rotation:
    """Images turned counter-clockwise about their centre, bilinear, black outside.

    >>> image = torch.arange(9, dtype=torch.uint8).reshape(1, 1, 3, 3)
    >>> Rotation(90.0)(image).squeeze()
    tensor([[2, 5, 8],
            [1, 4, 7],
            [0, 3, 6]], dtype=torch.uint8)
    """

    degrees: float

    def __call__(self, pixels: Tensor) -> Tensor:
        if self.degrees == 0:
            return pixels
        angle = torch.deg2rad(torch.tensor(self.degrees, dtype=torch.float64))
        cos, sin = float(angle.cos()), float(angle.sin())
        # grids hold x before y, each in −1…1: sides of another ratio would be sheared without this
        ratio = pixels.shape[2] / pixels.shape[3]
        matrix = torch.tensor([[[cos, -sin * ratio, 0.0], [sin / ratio, cos, 0.0]]])
        grid = affine_grid(matrix, [1, *pixels.shape[1:]], align_corners=False)
        grid = grid.to(pixels.device).expand(len(pixels), -1, -1, -1)
        turned = grid_sample(pixels.float(), grid, align_corners=False)
        return turned.round().clamp(0, 255).to(torch.uint8)


@dataclass(frozen=True)
class Permutation:
    """Pixels in another order, the same for all channels: place i takes the pixel order[i]."""

    order: Tensor

    def __call__(self, pixels: Tensor) -> Tensor:
        moved = pixels.flatten(2)[:, :, self.order.to(pixels.device)]
        return moved.reshape(pixels.shape)


def rotations(tasks: int, degrees: float) -> list[Look]:
    """Turned by 0, d/T, 2d/T, … (T − 1)d/T degrees."""
    check_numbers(tasks=tasks, at_least=1, at_most=1000, whole=True)
    check_numbers(degrees=degrees, above=0, at_most=360)
    return [Rotation(degrees * index / tasks) for index in range(tasks)]


def permutations(tasks: int, seed: int, image_shape: tuple[int, int, int]) -> list[Look]:
    """The pixels as they are, then in T − 1 random orders."""
    check_numbers(tasks=tasks, at_least=1, at_most=1000, whole=True)
    check_numbers(seed=seed, at_least=0, below=2**32, whole=True)
    generator = torch.Generator().manual_seed(seed)
    pixels = image_shape[1] * image_shape[2]
    orders = [torch.randperm(pixels, generator=generator) for _ in range(tasks - 1)]
    return [Permutation(order) for order in (torch.arange(pixels), *orders)]
