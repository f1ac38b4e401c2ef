"""The rehearsal memory: preallocated columns, written and read by slot."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from ..errors import check_numbers
from ..functional.sampling import draw_without_replacement, keep_last
from ..types import State
from .class_quotas import ClassQuotas
from .disk_rows import DiskColumn
from .poison import Poison


@dataclass(frozen=True)
class Column:
    """Shape and type of a value stored with every sample; shape None: that of the image."""

    shape: tuple[int, ...] | None = ()
    dtype: torch.dtype = torch.float32


Choice = tuple[Tensor, dict[str, Tensor]]
"""A slot (or −1) for each offered row, and the rows of the policy's own columns."""


class Policy(Protocol):
    """Decides which slot each offered sample takes, given their labels y."""

    columns: Mapping[str, Column]
    """Columns that the policy itself needs."""

    def choose(self, memory: Memory, y: Tensor, generator: torch.Generator) -> Choice: ...


class Memory:
    """`size` slots for samples of the stream: images as uint8, and any further columns.

    Every memory has the columns x (image), y (position in the class order) and task; with `poison`,
    which replaces labels as samples enter, also `poisoned`. A method may redefine x (as float, to
    edit the pixels). A memory is a `Source`: a method can train on it like on a task's data.

    storage: "ram", on `device`; or "disk", which keeps images in files below `folder` (None:
    temporary files) and everything else in RAM. Rows may be offered from any device.

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
        *,
        storage: Literal["ram", "disk"] = "ram",
        folder: Path | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        check_numbers(size=size, at_least=0, whole=True)
        self.size, self.policy, self.poison = size, policy, poison
        self.device = torch.device("cpu" if storage == "disk" else device)
        self.seen = 0  # samples ever offered: the reservoir's probabilities depend on it
        self.filled = 0
        self._quotas: ClassQuotas | None = None
        columns = {
            "x": Column(None, torch.uint8),
            "y": Column((), torch.int64),
            "task": Column((), torch.int64),
            **({"poisoned": Column((), torch.bool)} if poison else {}),
            **columns,
            **policy.columns,
        }
        self.data: dict[str, Tensor | DiskColumn] = {}
        for name, column in columns.items():
            shape, dtype = image_shape if column.shape is None else column.shape, column.dtype
            if storage == "disk" and column.shape is None:
                file = folder and folder / f"{name}.rows"
                self.data[name] = DiskColumn(size, shape, dtype, file)
            else:
                self.data[name] = torch.zeros((size, *shape), dtype=dtype, device=self.device)

    def __len__(self) -> int:
        return self.filled

    def offer(self, generator: torch.Generator, **rows: Tensor) -> Tensor:
        """Let the policy keep some of these samples. Returns each row's slot, −1 if not kept."""
        slots, extra = self.policy.choose(self, rows["y"], generator)
        self.seen += len(slots)
        kept = keep_last(slots)
        # Slots are chosen on the host: nothing here waits for another device.
        if len(which := torch.from_numpy(np.flatnonzero(kept.numpy()))):
            chosen = {
                name: values[which.to(values.device, non_blocking=True)]
                for name, values in (rows | extra).items()
            }
            self._write(slots[which], chosen)
            self.filled = max(self.filled, int(slots.numpy().max()) + 1)
        return torch.where(kept, slots, -1)

    def update(self, slots: Tensor, **columns: Tensor) -> None:
        """Overwrite columns of some slots."""
        if "y" in columns or "key" in columns:
            self._quotas = None
        self._store(slots, columns)

    def _store(self, slots: Tensor, columns: Mapping[str, Tensor]) -> None:
        index = slots.to(self.device, non_blocking=True)
        for name, values in columns.items():
            column = self.data[name]
            column[index] = values.to(self.device, column.dtype, non_blocking=True)

    def _write(self, slots: Tensor, rows: Mapping[str, Tensor]) -> None:
        """Store new samples; columns that they lack become zero, not the old sample's value."""
        if self.poison and rows:
            labels, poisoned = self.poison(rows["y"].cpu(), rows["task"].cpu())
            rows = {**rows, "y": labels, "poisoned": poisoned}
        absent = {name: torch.zeros(()) for name in self.data if name not in rows}
        self._store(slots, absent | dict(rows))
        if self._quotas:
            y, key = rows["y"].cpu().numpy(), rows["key"].cpu().numpy()
            self._quotas.add(slots.numpy(), y, key)

    @property
    def quotas(self) -> ClassQuotas:
        """The equal quotas of all classes, for policies that store a key."""
        if self._quotas is None:
            y, key = (self.read(name, torch.arange(self.filled)) for name in ("y", "key"))
            self._quotas = ClassQuotas(y.numpy(), key.numpy())
        return self._quotas

    def rebuild(self, keep: Tensor, **new: Tensor) -> None:
        """Keep these slots, in this order, and append new rows."""
        n_new = len(new["y"]) if new else 0
        if len(keep) + n_new > self.size:
            raise ValueError(f"Expected at most {self.size} rows, but got {len(keep) + n_new}.")
        self._quotas = None
        for column in self.data.values():
            if isinstance(column, DiskColumn):
                column.rearrange(keep)
            else:
                _rearrange(column, keep)
        self.filled = len(keep) + n_new
        if n_new:
            self._write(torch.arange(len(keep), self.filled), new)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """n different filled slots, drawn uniformly; all of them if there are fewer."""
        return draw_without_replacement(min(n, self.filled), self.filled, generator)

    def rows(self, index: Tensor) -> dict[str, Tensor]:
        slots = index.to(self.device, non_blocking=True)
        return {name: column[slots] for name, column in self.data.items()} | {"slot": index}

    def read(self, name: str, index: Tensor) -> Tensor:
        """One column of some slots, on the host."""
        return self.data[name][index.to(self.device)].cpu()

    def state_dict(self) -> State:
        """The filled slots, in tensors that share the memory's storage: save or copy them at once.

        Slices pass through numpy, because torch would save the whole storage of a slice.
        """
        return {
            "seen": self.seen,
            "filled": self.filled,
            "data": {
                name: column.state_dict(self.filled)
                if isinstance(column, DiskColumn)
                else torch.from_numpy(column[: self.filled].cpu().numpy())
                for name, column in self.data.items()
            },
            **({"poison": self.poison.generator.get_state()} if self.poison else {}),
        }

    def load_state_dict(self, state: State) -> None:
        self.seen, self.filled, self._quotas = state["seen"], state["filled"], None
        for name, column in self.data.items():
            values = state["data"][name]
            if isinstance(column, Tensor):
                column[: self.filled] = values
            elif isinstance(values, Tensor):  # the rows' bytes, not their places in a file
                shape = (self.filled, *column.shape[1:])
                column[torch.arange(self.filled)] = values.view(column.dtype).reshape(shape)
            else:
                column.load_state_dict(values)
        if self.poison:
            self.poison.generator.set_state(state["poison"])

    def digest(self) -> int:
        """Hash of the content: equal for memories that are equal slot by slot, bit by bit."""
        columns = {
            name: column.sums(self.filled) if isinstance(column, DiskColumn) else column
            for name, column in self.data.items()
        }
        filled = {name: column[: self.filled] for name, column in columns.items()}
        counts = torch.tensor([self.seen, self.filled])
        poison = {"poison": self.poison.generator.get_state()} if self.poison else {}
        return digest({**filled, "counts": counts, **poison})

    def open_files(self) -> None:
        """Open the files of a memory on disk."""
        for column in self.data.values():
            if isinstance(column, DiskColumn):
                column.open()

    def checkpointed(self, newest: int, oldest: int) -> None:
        """Record which checkpoints are kept, by number of steps: rows on disk that only older ones
        refer to can be overwritten."""
        for column in self.data.values():
            if isinstance(column, DiskColumn):
                column.checkpointed(newest, oldest)


def digest(tensors: Mapping[str, Tensor]) -> int:
    """Hash of names, types, shapes and all bits, below 2⁶³.

    >>> digest({"a": torch.zeros(3)}) == digest({"a": torch.zeros(3)}) != digest({})
    True
    """
    total = hashlib.blake2b(digest_size=8)
    for name, tensor in tensors.items():
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        if len(flat):  # torch views no empty tensor that was expanded
            total.update(flat.view(torch.uint8).numpy().data)
    return int.from_bytes(total.digest(), "little") >> 1


def _rearrange(column: Tensor, keep: Tensor) -> None:
    """column[i] = column[keep[i]]; in parts if `keep` ascends, which overwrites no unread row."""
    ascending = bool((keep[1:] > keep[:-1]).all())
    step = 4096 if ascending else max(1, len(keep))
    for target, source in zip(torch.arange(len(keep)).split(step), keep.split(step), strict=True):
        column[target.to(column.device)] = column[source.to(column.device)]
