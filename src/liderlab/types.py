"""The types that packages exchange: batches, sources, tasks, recipes, fits.

Every row of a batch carries its provenance (`slot`: −1 for the stream, ≥ 0 for that slot of the
memory), so that one forward function (`Step.net`) serves separate passes, mixed batches and fits on
memory alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

Terms = dict[str, Tensor]
"""Named loss terms, whose sum is minimised. A 1-D term has one value per row and contributes its
mean over the rows of all ranks. A 0-D term is added unchanged and must be equal on all ranks. An
empty dict means that there is nothing to optimise in this step."""

Gradient = dict[str, Tensor]
"""The loss's gradient, or a change of the weights, by the names of `network.named_parameters()`:
one tensor for each trained parameter of the network."""

View = Callable[[Tensor], Tensor]
"""One drawn augmentation: the same crop, flip and normalisation for any pixels."""

State = dict[str, Any]

Origin = Literal["stream", "memory", "both"]

MakeOptimizer = Callable[..., torch.optim.Optimizer]


@dataclass(frozen=True)
class Batch:
    """Rows for the network; on several ranks, this rank's part of them.

    A batch is true if any rank has rows, so that all ranks take the same branch.

    x: (n, C, H, W) float, the network's input: `view(raw)`.
    raw: (n, C, H, W) as stored, un-augmented, uint8.
    y: (n,) position of the class in the class order. task: (n,). slot: (n,).
    columns: further columns that the memory stores with the rows (logits, …).
    origin: where the rows come from as a whole; known without reading `slot` from the device.
    total: rows on all ranks together; None: the batch was not split, every rank has all rows.
    """

    x: Tensor
    raw: Tensor
    y: Tensor
    task: Tensor
    slot: Tensor
    view: View
    columns: Mapping[str, Tensor] = field(default_factory=dict)
    origin: Origin = "both"
    total: int | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __bool__(self) -> bool:
        return self.rows_in_all > 0

    @property
    def rows_in_all(self) -> int:
        return len(self.y) if self.total is None else self.total

    @property
    def replayed(self) -> Tensor:
        """(n,) True where the row comes from the memory."""
        return self.slot >= 0

    def replace(self, *, x: Tensor | None = None, raw: Tensor | None = None) -> Batch:
        """The same rows with other inputs; `raw` passes through the same view."""
        if raw is not None:
            return replace(self, raw=raw, x=self.view(raw))
        return replace(self, x=self.x if x is None else x)


class Source(Protocol):
    """Rows by index: a task's data, a memory, or several of them one after the other."""

    def __len__(self) -> int: ...

    def rows(self, index: Tensor) -> dict[str, Tensor]:
        """Columns by name: at least x (uint8), y and task; slot if the rows come from a memory."""
        ...


@dataclass(frozen=True)
class Concat:
    """Sources one after the other, with the columns that all of them have.

    Rows keep the order of the index.
    """

    sources: tuple[Source, ...]

    def __len__(self) -> int:
        return sum(len(source) for source in self.sources)

    def rows(self, index: Tensor) -> dict[str, Tensor]:
        parts, places, start = [], [], 0
        for source in self.sources:
            inside = (index >= start) & (index < start + len(source))
            part = source.rows(index[inside] - start)
            part.setdefault("slot", torch.full((len(part["y"]),), -1))
            parts.append(part)
            places.append(inside.nonzero().squeeze(1))
            start += len(source)
        back = torch.cat(places).argsort()
        names = set.intersection(*(set(part) for part in parts))
        return {name: _joined([part[name] for part in parts], back) for name in sorted(names)}


def _joined(parts: Sequence[Tensor], order: Tensor) -> Tensor:
    """The parts concatenated, then put in this order; on an accelerator if any part is."""
    device = max((part.device for part in parts), key=lambda device: device.type != "cpu")
    whole = torch.cat([part.to(device, non_blocking=True) for part in parts])
    return whole[order.to(device, non_blocking=True)]


@dataclass(frozen=True)
class Task:
    """One stretch of the stream.

    classes: of its test images, ascending positions in the class order; other tasks may have them
    too. also: further classes that its training images show. validation: training images
    held back for early stopping.
    """

    index: int
    classes: Sequence[int]
    train: Source
    test: Source
    also: Sequence[int] = ()
    validation: Source | None = None


def seen_classes(tasks: Iterable[Task]) -> list[int]:
    """The classes that these tasks show in training, ascending."""
    return sorted({c for task in tasks for c in (*task.classes, *task.also)})


class Transform(Protocol):
    """Raw pixels to network input; mean and std per channel, for pixels in 0…1."""

    mean: list[float]
    std: list[float]

    def sample(self, n: int, generator: torch.Generator | None, part: slice = slice(None)) -> View:
        """One drawn augmentation for n images; without a generator, only normalisation.

        part: makes the view for these images only; the draw does not depend on it.
        """
        ...


class Stream(Protocol):
    """A benchmark: its tasks in order, class names, image shape, and how pixels become input."""

    @property
    def tasks(self) -> Sequence[Task]: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def image_shape(self) -> tuple[int, int, int]: ...
    @property
    def transform(self) -> Transform: ...


@dataclass(frozen=True)
class MultiStep:
    """The learning rate's factor γ^(milestones passed): a function of the epoch, without state.

    >>> [MultiStep((2, 3), 0.1)(epoch) for epoch in range(4)]
    [1.0, 1.0, 0.1, 0.010000000000000002]
    """

    milestones: tuple[int, ...] = ()
    gamma: float = 0.1

    def __call__(self, epoch: float) -> float:
        return float(self.gamma ** sum(epoch >= m for m in self.milestones))


@dataclass(frozen=True)
class Recipe:
    """How to optimise. schedule: factor of the learning rate by epoch. optimizer: is called with
    parameter groups, lr, weight_decay and, where it is not 0, momentum. clip: is called with the
    parameters to change their gradients, summed over ranks. drop_last: leave out an epoch's last
    batch if it is short. updates: steps on every batch."""

    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    batch_size: int = 32
    replay_size: int = 32
    schedule: Callable[[float], float] = MultiStep()
    optimizer: MakeOptimizer = torch.optim.SGD
    clip: Callable[[list[Tensor]], object] | None = None
    drop_last: bool = False
    updates: int = 1


@dataclass(frozen=True)
class Fit:
    """One phase of training: epochs over `data` with one optimizer.

    restart: begin from the run's initial weights. augment: draw crops and flips.
    """

    data: Source
    epochs: int
    recipe: Recipe
    name: str = "train"
    restart: bool = False
    augment: bool = True
