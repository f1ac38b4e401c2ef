"""Checkpoints: written atomically, read only if they are intact.

A file holds a line that names the format, the SHA-256 of the payload, and the payload, written by
`torch.save`. `torch.load(weights_only=True)` reads it: it builds tensors and plain values and runs
no code.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ..errors import UserError
from ..files import atomic_file, remove_empty

if TYPE_CHECKING:
    from ..types import State

MAGIC = b"liderlab checkpoint\n"
SCHEMA = 1
KEPT = 2
STEPS = re.compile(r"step-[0-9]{12,}\.pt")

log = logging.getLogger("liderlab")


class Damaged(Exception):
    """The bytes are not a checkpoint of this version."""


class _HashingFile:
    """Writes to a file; keeps the SHA-256 of the bytes and the first error of a write."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.sha256 = file, hashlib.sha256()
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            self._file.write(data)
        except OSError as error:
            self.error = self.error or error
            raise
        self.sha256.update(data)
        return len(data)

    def flush(self) -> None:
        self._file.flush()


def write_state(path: Path, state: State) -> None:
    """Write the state atomically, without a copy of it in memory."""
    import torch  # imported late: listing runs does not need it

    with atomic_file(path) as file:
        file.write(MAGIC + bytes(hashlib.sha256().digest_size))
        hashing = _HashingFile(file)
        try:
            torch.save({"schema": SCHEMA, **state}, cast("IO[bytes]", hashing))
        except RuntimeError:  # torch hides the file's own error
            raise hashing.error or RuntimeError("cannot save this state") from None
        file.seek(len(MAGIC))
        file.write(hashing.sha256.digest())


class _Payload:
    """The part of a file after its current position, as a file that begins there."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._start = file, file.tell()
        self.read, self.readline = file.read, file.readline

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset + self._start * (whence == os.SEEK_SET), whence) - self._start

    def tell(self) -> int:
        return self._file.tell() - self._start


def read_state(path: Path) -> State:
    """The state in a file, on the CPU; raises Damaged or an OSError."""
    import torch

    with path.open("rb") as file:
        head = file.read(len(MAGIC) + hashlib.sha256().digest_size)
        payload = _Payload(file)
        if head != MAGIC + hashlib.file_digest(file, "sha256").digest():
            raise Damaged("its checksum is wrong")
        payload.seek(0)
        try:
            state: State = torch.load(payload, map_location="cpu", weights_only=True)  # type: ignore[arg-type]
            schema = state["schema"]
        except Exception as error:  # torch raises many kinds
            raise Damaged("it does not hold a run's state") from error
    if schema != SCHEMA:
        raise Damaged(f"it has schema {schema}, this version reads {SCHEMA}")
    return state


def steps_of(file: Path) -> int:
    """
    >>> steps_of(Path("checkpoints/step-000000000120.pt"))
    120
    """
    return int(file.stem.removeprefix("step-"))


class Checkpoints:
    """The last two checkpoints of a run, named by the number of steps taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> list[Path]:
        """Newest first; files with other names are left alone."""
        found = self.folder.glob("step-*.pt")
        return sorted((file for file in found if STEPS.fullmatch(file.name)), reverse=True)

    def write(self, state: State) -> None:
        """Write a checkpoint; keep it and the one before, delete all others.

        A file with more steps was damaged: the run resumed from an earlier one.
        """
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"step-{state['steps']:012d}.pt"
        write_state(path, state)
        kept = [other for other in self.files() if other <= path][:KEPT]
        for other in set(self.files()) - set(kept):
            other.unlink()

    def oldest(self) -> int:
        """Number of steps of the oldest checkpoint."""
        return min(map(steps_of, self.files()))

    def latest(self, problem: Callable[[State], str | None] = lambda state: None) -> State | None:
        """The newest checkpoint that is intact and has no `problem`; None before the first one."""
        files = self.files()
        for file in files:
            try:
                state = read_state(file)
                if reason := problem(state):
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
        remove_empty(self.folder)
