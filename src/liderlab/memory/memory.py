"""The rehearsal memory: preallocated columns, written and read by slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..errors import check_numbers
from ..functional.sampling import draw_without_replacement, keep_last
from ..types import State
from .poison import Poison


@dataclass(frozen=True)
class Column:
    """What one value per sample looks like; shape None: that of the image."""

    shape: tuple[int, ...] | None = ()
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

    Always there: x (image), y (position in the class order), task; with `poison`, which replaces
    labels on their way in, also `poisoned`. A method's columns may say otherwise about x (float,
    where it edits the pixels). A `Source`, so that a fit can train on it like on a task's data.

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
        poison: Poison | None = None,
    ) -> None:
        check_numbers(size=size, at_least=0, whole=True)
        self.size, self.policy, self.poison = size, policy, poison
        self.seen = 0  # samples ever offered: the reservoir's odds depend on it
        self.filled = 0
        columns = {
            "x": Column(None, torch.uint8),
            "y": Column((), torch.int64),
            "task": Column((), torch.int64),
            **({"poisoned": Column((), torch.bool)} if poison else {}),
            **columns,
            **policy.columns,
        }
        self.data = {
            name: torch.zeros(
                (size, *(image_shape if column.shape is None else column.shape)), dtype=column.dtype
            )
            for name, column in columns.items()
        }

    def __len__(self) -> int:
        return self.filled

    def offer(self, generator: torch.Generator, **rows: Tensor) -> Tensor:
        """Samples pass by; the policy keeps some. Returns each row's slot, −1 where not kept."""
        slots, extra = self.policy.choose(self, rows["y"], generator)
        self.seen += len(slots)
        kept = keep_last(slots)
        self._write(slots[kept], {name: v[kept] for name, v in (rows | extra).items()})
        self.filled = max(self.filled, int(slots.max()) + 1) if len(slots) else self.filled
        return torch.where(kept, slots, -1)

    def update(self, slots: Tensor, **columns: Tensor) -> None:
        """Overwrite columns of some slots."""
        for name, values in columns.items():
            self.data[name][slots] = values.to(self.data[name].dtype)

    def _write(self, slots: Tensor, rows: Mapping[str, Tensor]) -> None:
        """New samples: a column that they do not bring starts at zero, not at the old sample's."""
        if self.poison and rows:
            labels, poisoned = self.poison(rows["y"], rows["task"])
            rows = {**rows, "y": labels, "poisoned": poisoned}
        absent = {name: torch.zeros(()) for name in self.data if name not in rows}
        self.update(slots, **absent, **rows)

    def rebuild(self, keep: Tensor, **new: Tensor) -> None:
        """Keep these slots, in this order, and put new rows behind them."""
        n_new = len(new["y"]) if new else 0
        if len(keep) + n_new > self.size:
            raise ValueError(f"Expected at most {self.size} rows, but got {len(keep) + n_new}.")
        for column in self.data.values():
            column[: len(keep)] = column[keep]
        self.filled = len(keep) + n_new
        self._write(torch.arange(len(keep), self.filled), new)

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
            **({"poison": self.poison.generator.get_state()} if self.poison else {}),
        }

    def load_state_dict(self, state: State) -> None:
        self.seen, self.filled = state["seen"], state["filled"]
        for name, column in self.data.items():
            column[: self.filled] = state["data"][name]
        if self.poison:
            self.poison.generator.set_state(state["poison"])
