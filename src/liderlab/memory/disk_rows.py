"""A memory's images in a file: little RAM, and a kill at any time leaves checkpoints intact.

Every slot has a *place* in the file. A new row never overwrites one that a checkpoint refers to: it
goes to a free place, and the old place becomes free when the last checkpoint that refers to it is
deleted. So a checkpoint holds only the table of places, and its rows are unchanged when a run
resumes from it. As two checkpoints are kept, at most 3 · size places are in use.
"""

from __future__ import annotations

import math
import os
import tempfile
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UserError
from ..files import no_link
from ..types import State

Bytes = NDArray[np.uint8]
NONE = -1  # no place, or no checkpoint yet


class DiskColumn:
    """`size` rows of one shape and type in a file; indexed like a tensor, by slots.

    file: created by `open`, at the latest for the first row; None: a temporary file, gone with the
    process.

    >>> column = DiskColumn(4, (2,), torch.int64)
    >>> column[torch.tensor([3, 0])] = torch.tensor([[7, 8], [1, 2]])
    >>> column[torch.tensor([0, 3])]
    tensor([[1, 2],
            [7, 8]])
    """

    def __init__(
        self, size: int, shape: Sequence[int], dtype: torch.dtype, file: Path | None = None
    ) -> None:
        self.shape, self.dtype, self.file = (size, *shape), dtype, file
        self._bytes = torch.zeros(1, dtype=dtype).element_size() * math.prod(shape)
        self._handle: int | None = None
        self._place = np.full(size, NONE, np.int64)
        self._sum = np.zeros(size, np.uint32)  # CRC-32 of every slot's row
        self._young = bytearray()  # by place: 1 if written after the last state_dict()
        self._free: list[int] = []
        self._old: list[tuple[int, int]] = []  # (newest checkpoint that may refer to it, place)
        self._newest = NONE

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def places(self) -> int:
        """The number of places in the file."""
        return len(self._young)

    def __getitem__(self, slots: Tensor) -> Tensor:
        """A copy of these rows; slots that were never written are zero."""
        rows = torch.zeros(len(slots), *self.shape[1:], dtype=self.dtype)
        places = self._place[slots.numpy()].tolist()
        for row, place in zip(_as_bytes(rows), places, strict=True):
            if place >= 0:
                data = os.pread(self.open(), self._bytes, place * self._bytes)
                row[:] = np.frombuffer(data, np.uint8)
        return rows

    def __setitem__(self, slots: Tensor, values: Tensor) -> None:
        """slots: all different. values: a row for each, or one for all."""
        rows = values.to("cpu", self.dtype).expand(len(slots), *self.shape[1:]).contiguous()
        for slot, row in zip(slots.tolist(), _as_bytes(rows), strict=True):
            place = self._fresh_place(int(self._place[slot]))
            data, offset = memoryview(row), place * self._bytes
            while data:
                written = os.pwrite(self.open(), data, offset)
                data, offset = data[written:], offset + written
            self._place[slot], self._sum[slot] = place, zlib.crc32(row)

    def rearrange(self, keep: Tensor) -> None:
        """Slot i becomes the former slot keep[i]; further slots become empty. Copies no row."""
        kept = keep.numpy()
        if len(np.unique(kept)) < len(kept):
            raise ValueError("Expected different slots to keep.")
        dropped = np.ones(len(self), bool)
        dropped[kept] = False
        for place in self._place[dropped & (self._place >= 0)].tolist():
            self._release(place)
        for table in (self._place, self._sum):
            table[: len(kept)] = table[kept]
        self._place[len(kept) :] = NONE

    def _fresh_place(self, old: int) -> int:
        """A place for the new row of a slot whose old row is at `old`."""
        if old >= 0 and self._young[old]:
            return old
        if self._free:
            place = self._free.pop()
        else:
            place = self.places
            self._young.append(0)
        if old >= 0:
            self._release(old)
        self._young[place] = 1
        return place

    def _release(self, place: int) -> None:
        if self._young[place]:
            self._free.append(place)
        else:
            self._old.append((self._newest, place))

    def open(self) -> int:
        """The file's descriptor. A run calls this before training: from then on its rows go to
        this file, even if its folder is deleted and made anew for another run."""
        if self._handle is None:
            if self.file is None:
                self._handle, name = tempfile.mkstemp(prefix="liderlab-memory-")
                os.unlink(name)
            else:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self._handle = no_link(self.file, os.O_RDWR | os.O_CREAT)
            weakref.finalize(self, os.close, self._handle)
        return self._handle

    def sums(self, filled: int) -> Tensor:
        """CRC-32 of each of the first `filled` rows; 0 for a slot that was never written."""
        known = np.where(self._place >= 0, self._sum, 0)
        return torch.from_numpy(known[:filled].astype(np.int64))

    def state_dict(self, filled: int) -> State:
        """The places of the first `filled` rows, which are flushed to the disk and stay there."""
        if self._handle is not None:
            os.fsync(self._handle)
        self._young[:] = bytes(self.places)
        return {
            "place": torch.from_numpy(self._place[:filled].copy()),
            "sum": torch.from_numpy(self._sum[:filled].astype(np.int64)),
            "old": torch.tensor(self._old, dtype=torch.int64).reshape(-1, 2),
            "row_bytes": self._bytes,
            "shape": list(self.shape[1:]),
            "dtype": self.dtype,
        }

    def load_state_dict(self, state: State) -> None:
        """Use the rows in the file again; refuse it if any of them has changed."""
        place = state["place"].numpy()
        if len(place):
            rows = read_rows(self.open(), state, range(len(place)))
            if not all(intact for _, intact in rows):
                raise UserError(
                    f"{self.file} has changed since this run's checkpoint: start the run anew"
                )
        self._place[:] = NONE
        self._place[: len(place)], self._sum[: len(place)] = place, state["sum"].numpy()
        self._old = [(int(newest), int(old)) for newest, old in state["old"]]
        used = {*place.tolist(), *(old for _, old in self._old)}
        places = max(used, default=-1) + 1
        self._young = bytearray(places)
        self._free = [p for p in range(places - 1, -1, -1) if p not in used]

    def checkpointed(self, newest: int, oldest: int) -> None:
        """Record which checkpoints are kept, by number of steps: from `oldest` to `newest`.

        Checkpoints up to `newest` may refer to rows that are replaced from now on. Rows that only
        checkpoints before `oldest` refer to become free.
        """
        self._free += [place for last, place in self._old if last < oldest]
        self._old = [(last, place) for last, place in self._old if last >= oldest]
        self._newest = newest


def read_rows(
    handle: int, state: Mapping[str, Any], slots: Iterable[int]
) -> Iterator[tuple[bytes, bool]]:
    """The bytes of these slots' rows, and whether they still have the checksums in the state."""
    size = state["row_bytes"]
    for slot in slots:
        data = os.pread(handle, size, int(state["place"][slot]) * size)
        yield data, zlib.crc32(data) == int(state["sum"][slot])


class StoredRows:
    """The rows of a column's state, read from its file when indexed by slots.

    For readers other than the run itself. Rows that the run has replaced since are refused.
    """

    def __init__(self, file: Path, state: Mapping[str, Any]) -> None:
        self._file, self._state = file, state

    def __len__(self) -> int:
        return len(self._state["place"])

    def __getitem__(self, slots: Tensor) -> Tensor:
        rows = torch.zeros(len(slots), *self._state["shape"], dtype=self._state["dtype"])
        with self._file.open("rb") as opened:
            stored = read_rows(opened.fileno(), self._state, slots.tolist())
            for row, (data, intact) in zip(_as_bytes(rows), stored, strict=True):
                if not intact:
                    raise UserError(f"{self._file} has changed since that checkpoint")
                row[:] = np.frombuffer(data, np.uint8)
        return rows


def stored_bytes(file: Path, state: Mapping[str, Any]) -> Tensor:
    """The bytes of the rows of a column's state: (filled, bytes of a row)."""
    filled, size = len(state["place"]), state["row_bytes"]
    if not filled:  # then there may be no file
        return torch.zeros(0, size, dtype=torch.uint8)
    with file.open("rb") as opened:
        rows = [data for data, _ in read_rows(opened.fileno(), state, range(filled))]
    return torch.frombuffer(bytearray(b"".join(rows)), dtype=torch.uint8).reshape(filled, size)


def remove_rows(folder: Path) -> None:
    """Delete the files of a memory, and the folder if nothing else is in it."""
    for file in folder.glob("*.rows"):
        file.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _as_bytes(rows: Tensor) -> Bytes:
    """(n, bytes of a row), the same memory."""
    return rows.numpy().reshape(len(rows), math.prod(rows.shape[1:])).view(np.uint8)
