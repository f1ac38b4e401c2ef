"""The rehearsal memory: preallocated columns, written and read by slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..functional.sampling import draw_without_replacement, keep_last
from ..types import State


@dataclass(frozen=True)
class Column:
    """What one value per sample looks like."""

    shape: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32


class Policy(Protocol):
    """Decides which slot an offered sample takes."""

    columns: Mapping[str, Column]
    """What the policy itself stores with each sample."""

    def choose(
        self, memory: Memory, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """A slot (or −1) for each row of labels y, and the policy's own columns of those rows."""
        ...


class Memory:
    """`size` slots for samples of the stream: images as uint8, and any further columns.

    Always there: x (image), y (position in the class order), task. A `Source`, so that a fit can
    train on it like on a task's data.

    >>> from liderlab.memory.policies import Reservoir
    >>> memory = Memory(2, (1, 2, 2), {}, Reservoir())
    >>> x, y = torch.zeros(3, 1, 2, 2, dtype=torch.uint8), torch.arange(3)
    >>> _ = memory.offer(torch.Generator().manual_seed(0), x=x, y=y, task=torch.zeros(3))
    >>> len(memory), memory.seen
    (2, 3)
    """

    def __init__(
        self,
        size: int,
        image_shape: tuple[int, ...],
        columns: Mapping[str, Column],
        policy: Policy,
    ) -> None:
        if size < 0:
            raise ValueError(f"Expected a memory size ≥ 0, but got {size}.")
        self.size, self.policy = size, policy
        self.seen = 0  # samples ever offered: the reservoir's odds depend on it
        self.filled = 0
        columns = {
            "x": Column(tuple(image_shape), torch.uint8),
            "y": Column((), torch.int64),
            "task": Column((), torch.int64),
            **columns,
            **policy.columns,
        }
        self.data = {
            name: torch.zeros((size, *column.shape), dtype=column.dtype)
            for name, column in columns.items()
        }

    def __len__(self) -> int:
        return self.filled

    def offer(self, generator: torch.Generator, **rows: Tensor) -> Tensor:
        """Samples pass by; the policy keeps some. Returns each row's slot, −1 where not kept."""
        slots, extra = self.policy.choose(self, rows["y"], generator)
        self.seen += len(slots)
        kept = keep_last(slots)
        self.update(slots[kept], **{name: v[kept] for name, v in (rows | extra).items()})
        self.filled = max(self.filled, int(slots.max()) + 1) if len(slots) else self.filled
        return torch.where(kept, slots, -1)

    def update(self, slots: Tensor, **columns: Tensor) -> None:
        """Overwrite columns of some slots."""
        for name, values in columns.items():
            self.data[name][slots] = values.to(self.data[name].dtype)

    def rebuild(self, keep: Tensor, **new: Tensor) -> None:
        """Keep these slots, in this order, and put new rows behind them."""
        n_new = len(new["y"]) if new else 0
        if len(keep) + n_new > self.size:
            raise ValueError(f"Expected at most {self.size} rows, but got {len(keep) + n_new}.")
        for column in self.data.values():
            column[: len(keep)] = column[keep]
        self.filled = len(keep) + n_new
        self.update(torch.arange(len(keep), self.filled), **new)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """n different filled slots, uniformly; all of them if there are not more."""
        return draw_without_replacement(min(n, self.filled), self.filled, generator)

    def rows(self, index: Tensor) -> dict[str, Tensor]:
        return {name: column[index] for name, column in self.data.items()} | {"slot": index}

    def state_dict(self) -> State:
        return {
            "seen": self.seen,
            "filled": self.filled,
            "data": {name: column[: self.filled].clone() for name, column in self.data.items()},
        }

    def load_state_dict(self, state: State) -> None:
        self.seen, self.filled = state["seen"], state["filled"]
        for name, column in self.data.items():
            column[: self.filled] = state["data"][name]
