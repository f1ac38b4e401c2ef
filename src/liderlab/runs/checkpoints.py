"""Checkpoints that survive whatever happens while they are written.

A file is: a line that says what it is, the SHA-256 of what follows, and what `torch.save` wrote. It
is read only if the sum is right, and then by `torch.load(weights_only=True)`, which makes tensors
and plain values and runs nobody's code.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ..errors import UserError
from ..files import atomic_file

if TYPE_CHECKING:
    from ..types import State

MAGIC = b"liderlab checkpoint\n"
SCHEMA = 1
KEPT = 2
STEPS = re.compile(r"step-[0-9]{12,}\.pt")

log = logging.getLogger("liderlab")


class Damaged(Exception):
    """The bytes are not a checkpoint of ours."""


class _Summing:
    """A file that sums what is written to it, and remembers why it could not."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.sum = file, hashlib.sha256()
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            self._file.write(data)
        except OSError as error:
            self.error = self.error or error
            raise
        self.sum.update(data)
        return len(data)

    def flush(self) -> None:
        self._file.flush()


def pack_into(file: IO[bytes], state: State) -> None:
    """Straight into the file: a large memory has no room for a second one beside it."""
    import torch  # not needed to look at a run from the outside

    file.write(MAGIC + bytes(hashlib.sha256().digest_size))
    summing = _Summing(file)
    try:
        torch.save({"schema": SCHEMA, **state}, cast("IO[bytes]", summing))
    except RuntimeError:  # what torch makes of an error of the file's
        raise summing.error or RuntimeError("cannot save this state") from None
    file.seek(len(MAGIC))
    file.write(summing.sum.digest())


def pack(state: State) -> bytes:
    buffer = io.BytesIO()
    pack_into(buffer, state)
    return buffer.getvalue()


class _Payload:
    """What follows the sum in a file, read as a file of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._start = file, file.tell()
        self.read, self.readline = file.read, file.readline

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset + self._start * (whence == os.SEEK_SET), whence) - self._start

    def tell(self) -> int:
        return self._file.tell() - self._start


def unpack_from(file: IO[bytes]) -> State:
    """The state that was packed, on the CPU; the file is read twice, and held by nobody."""
    import torch

    head = file.read(len(MAGIC) + hashlib.sha256().digest_size)
    payload, total = _Payload(file), hashlib.sha256()
    while part := file.read(1 << 20):
        total.update(part)
    if head != MAGIC + total.digest():
        raise Damaged("its checksum is wrong")
    payload.seek(0)
    try:
        state: State = torch.load(payload, map_location="cpu", weights_only=True)  # type: ignore[arg-type]
        schema = state["schema"]
    except Exception as error:  # right sum, wrong content: made by somebody else
        raise Damaged("it does not hold a run's state") from error
    if schema != SCHEMA:
        raise Damaged(f"it has schema {schema}, this version reads {SCHEMA}")
    return state


def unpack(data: bytes) -> State:
    """
    >>> unpack(pack({"step": 3}))["step"]
    3
    """
    return unpack_from(io.BytesIO(data))


def steps_of(file: Path) -> int:
    """
    >>> steps_of(Path("checkpoints/step-000000000120.pt"))
    120
    """
    return int(file.stem.removeprefix("step-"))


class Checkpoints:
    """The last two checkpoints of a run, by the number of steps taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> list[Path]:
        """Newest first; whatever else lies there is not ours."""
        found = self.folder.glob("step-*.pt")
        return sorted((file for file in found if STEPS.fullmatch(file.name)), reverse=True)

    def write(self, state: State) -> None:
        self.folder.mkdir(exist_ok=True)
        file = self.folder / f"step-{state['steps']:012d}.pt"
        with atomic_file(file) as opened:
            pack_into(opened, state)
        kept = [whole for whole in self.files() if whole <= file][:KEPT]
        for other in set(self.files()) - set(kept):  # later ones: they could not be used
            other.unlink()

    def oldest(self) -> int:
        """The steps of the oldest one; rows on the disk that only older ones had are not needed."""
        return min(map(steps_of, self.files()))

    def read(self, file: Path) -> State:
        with file.open("rb") as opened:
            return unpack_from(opened)

    def latest(self, wrong: Callable[[State], str | None] = lambda state: None) -> State | None:
        """The newest one that is whole, with nothing `wrong`; None if there is none yet."""
        files = self.files()
        for file in files:
            try:
                state = self.read(file)
                if reason := wrong(state):
                    raise Damaged(reason)
                return state
            except (Damaged, OSError) as error:
                log.warning("checkpoint %s cannot be used: %s; trying the one before", file, error)
        if files:
            raise UserError(
                f"no checkpoint in {self.folder} can be used: start again with: lider run … --force"
            )
        return None

    def clear(self) -> None:
        for file in self.files():
            file.unlink()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()
