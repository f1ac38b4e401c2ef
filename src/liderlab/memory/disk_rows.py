"""A memory's images in a file, so that they need no RAM, and no kill can spoil a checkpoint.

Every slot knows the *place* of its row in the file. A new row never overwrites one that a
checkpoint may refer to: it goes to a free place, and the old one is set free when the last
checkpoint that refers to it is gone. So a checkpoint holds the table of places alone, and whichever
checkpoint a run goes on from, its rows are as they were. As two checkpoints are kept, at most
3 · size places are in use; the file grows as they are needed.

Rows are read through a memory map. They are written by `pwrite`: on a full disk that is an error,
where a store into the map would be a signal that kills the process.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import weakref
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UserError
from ..types import State

Bytes = NDArray[np.uint8]
NEVER = -1  # before the first checkpoint


class DiskColumn:
    """`size` rows of one shape and type in a file; indexed like a tensor, by slots.

    file: made when the first row is written; None takes a temporary one that dies with the process.

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
        self._bytes = torch.zeros(1, dtype=dtype).element_size() * int(np.prod(shape))
        self._handle: int | None = None
        self._map: mmap.mmap | None = None
        self._place = np.full(size, NEVER, np.int64)
        self._sum = np.zeros(size, np.uint32)  # CRC-32 of every slot's row
        self._young = bytearray()  # by place: written after the last state_dict(), unknown to it
        self._free: list[int] = []
        self._old: list[tuple[int, int]] = []  # (newest checkpoint that may refer to it, place)
        self._newest = NEVER

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def places(self) -> int:
        """How many rows the file has had room for at most."""
        return len(self._young)

    def __getitem__(self, slots: Tensor) -> Tensor:
        """A copy of these rows; slots that were never written are zero."""
        place = self._place[slots.numpy()]
        rows = torch.zeros(len(place), *self.shape[1:], dtype=self.dtype)
        if len(written := np.flatnonzero(place >= 0)):
            _as_bytes(rows)[written] = self._read(place[written])
        return rows

    def __setitem__(self, slots: Tensor, values: Tensor) -> None:
        """slots: all different. values: one row for each, or one that fits all."""
        rows = values.to("cpu", self.dtype).expand(len(slots), *self.shape[1:]).contiguous()
        handle = self._open()
        for slot, row in zip(slots.tolist(), _as_bytes(rows), strict=True):
            place = self._fresh_place(self._place[slot])
            _write_all(handle, memoryview(row), place * self._bytes)
            self._place[slot], self._sum[slot] = place, zlib.crc32(row)

    def rearrange(self, keep: Tensor) -> None:
        """Slot i becomes what slot keep[i] was, and the others become empty. Moves no row."""
        kept = keep.numpy()
        if len(np.unique(kept)) < len(kept):
            raise ValueError("Expected different slots to keep.")
        dropped = np.ones(len(self), bool)
        dropped[kept] = False
        for place in self._place[dropped & (self._place >= 0)].tolist():
            self._release(place)
        for table in (self._place, self._sum):
            table[: len(kept)] = table[kept]
        self._place[len(kept) :] = NEVER

    def _fresh_place(self, old: int) -> int:
        """Where a slot's new row goes, whose old one is there: never over what is referred to."""
        if old >= 0 and self._young[old]:
            return old
        if not self._free:
            self._grow()
        place = self._free.pop()
        if old >= 0:
            self._release(int(old))
        self._young[place] = True
        return place

    def _release(self, place: int) -> None:
        if self._young[place]:
            self._free.append(place)
        else:
            self._old.append((self._newest, place))

    def _grow(self) -> None:
        """More places at the end of the file, which take no room on the disk until written."""
        before, now = self.places, self.places + 64 + self.places // 8
        self._reserve(now)
        self._young += bytes(now - before)
        self._free += range(now - 1, before - 1, -1)

    def _reserve(self, places: int) -> None:
        if os.fstat(self._open()).st_size < places * self._bytes:
            os.ftruncate(self._open(), places * self._bytes)
        self._map = None

    def _open(self) -> int:
        if self._handle is None:
            if self.file is None:
                self._handle, name = tempfile.mkstemp(prefix="liderlab-memory-")
                os.unlink(name)
            else:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self._handle = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o644)
            weakref.finalize(self, os.close, self._handle)
        return self._handle

    def _read(self, places: NDArray[np.int64]) -> Bytes:
        """Through the map: whole rows are fetched at once, and nothing beside them."""
        if self._map is None:
            self._map = mmap.mmap(self._open(), self.places * self._bytes, prot=mmap.PROT_READ)
            self._map.madvise(mmap.MADV_RANDOM)
        for place in places.tolist():
            start = place * self._bytes // mmap.PAGESIZE * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_WILLNEED, start, (place + 1) * self._bytes - start)
        rows = np.frombuffer(self._map, np.uint8).reshape(self.places, self._bytes)[places]
        # What was read is the system's to cache, and no longer counted as this process's.
        self._map.madvise(mmap.MADV_DONTNEED)
        return rows

    def sums(self, filled: int) -> Tensor:
        """CRC-32 of each of the first rows; 0 where none was written."""
        known = np.where(self._place >= 0, self._sum, 0)
        return torch.from_numpy(known[:filled].astype(np.int64))

    # Checkpoints

    def state_dict(self, filled: int) -> State:
        """Where the first `filled` rows are. They are on the disk by then, and stay as they are."""
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
        """Take the rows up again where they are; refused unless all of them are as they were."""
        place, expected = state["place"].numpy(), state["sum"].numpy()
        if len(place):
            check_rows(self.file, self._open(), place, expected, self._bytes)
        self._place[:] = NEVER
        self._place[: len(place)], self._sum[: len(place)] = place, expected
        self._old = [(int(newest), int(old)) for newest, old in state["old"]]
        used = {*place.tolist(), *(old for _, old in self._old)}
        places = max(used, default=-1) + 1
        self._young = bytearray(places)
        self._free = [p for p in range(places - 1, -1, -1) if p not in used]
        if places:
            self._reserve(places)

    def checkpointed(self, newest: int, oldest: int) -> None:
        """The checkpoints on the disk are now these, by number of steps, and some between them.

        newest: what the rows released from now on belong to at most. What belonged to checkpoints
        before the oldest is free.
        """
        self._free += [place for last, place in self._old if last < oldest]
        self._old = [(last, place) for last, place in self._old if last >= oldest]
        self._newest = newest


def check_rows(
    file: Path | None, handle: int, place: NDArray[np.int64], sums: NDArray[np.int64], size: int
) -> None:
    """Refuse a file that does not hold these rows any more."""
    for number, expected in zip(place.tolist(), sums.tolist(), strict=True):
        if zlib.crc32(os.pread(handle, size, number * size)) != expected:
            raise UserError(
                f"{file} does not hold the memory of this run's checkpoint any more: run it again"
            )


class StoredRows:
    """The rows that a column's state refers to, for whoever looks from outside; read when asked.

    Indexed like the column, by slots. Refused if a row is not what it was: its run has gone on.
    """

    def __init__(self, file: Path, state: Mapping[str, Any]) -> None:
        self._file, self._place, self._sum = file, state["place"].numpy(), state["sum"].numpy()
        self._bytes, self._shape, self._dtype = state["row_bytes"], state["shape"], state["dtype"]

    def __len__(self) -> int:
        return len(self._place)

    def __getitem__(self, slots: Tensor) -> Tensor:
        rows = torch.zeros(len(slots), *self._shape, dtype=self._dtype)
        with self._file.open("rb") as opened:
            for row, slot in zip(_as_bytes(rows), slots.tolist(), strict=True):
                data = os.pread(opened.fileno(), self._bytes, self._place[slot] * self._bytes)
                if zlib.crc32(data) != self._sum[slot]:
                    raise UserError(f"{self._file} has changed since that checkpoint")
                row[:] = np.frombuffer(data, np.uint8)
        return rows


def stored_bytes(file: Path, state: Mapping[str, Any]) -> Tensor:
    """What a state refers to, slot by slot: (filled, bytes of a row)."""
    place, size = state["place"].tolist(), state["row_bytes"]
    with file.open("rb") if place else open(os.devnull, "rb") as opened:
        rows = [os.pread(opened.fileno(), size, number * size) for number in place]
    return torch.frombuffer(bytearray(b"".join(rows)) or bytearray(1), dtype=torch.uint8)[
        : len(place) * size
    ].reshape(len(place), size)


def remove_rows(folder: Path) -> None:
    """Remove the files of a memory, and the folder if nothing else is in it."""
    for file in folder.glob("*.rows"):
        file.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _as_bytes(rows: Tensor) -> Bytes:
    """(n, bytes of a row), the same memory."""
    return rows.numpy().reshape(len(rows), math.prod(rows.shape[1:])).view(np.uint8)


def _write_all(handle: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(handle, data, offset)
        data, offset = data[written:], offset + written
