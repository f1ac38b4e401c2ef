"""Checkpoints that survive whatever happens while they are written.

A file is: a line that says what it is, the SHA-256 of what follows, and what `torch.save` wrote. It
is read only if the sum is right, and then by `torch.load(weights_only=True)`, which makes tensors
and plain values and runs nobody's code.
"""

from __future__ import annotations

import hashlib
import io
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from .files import write_atomically

if TYPE_CHECKING:
    from ..types import State

MAGIC = b"liderlab checkpoint\n"
SCHEMA = 1
KEPT = 2

log = logging.getLogger("liderlab")


class Damaged(Exception):
    """The bytes are not a checkpoint of ours."""


def pack(state: State) -> bytes:
    import torch  # not needed to look at a run from the outside

    buffer = io.BytesIO()
    torch.save({"schema": SCHEMA, **state}, buffer)
    payload = buffer.getbuffer()
    return b"".join([MAGIC, hashlib.sha256(payload).digest(), payload])


def unpack(data: bytes) -> State:
    """The state that was packed, on the CPU.

    >>> unpack(pack({"step": 3}))["step"]
    3
    """
    import torch

    start = len(MAGIC) + hashlib.sha256().digest_size
    payload = memoryview(data)[start:]
    if data[:start] != MAGIC + hashlib.sha256(payload).digest():
        raise Damaged("its checksum is wrong")
    try:
        state: State = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
        schema = state["schema"]
    except Exception as error:  # right sum, wrong content: made by somebody else
        raise Damaged("it does not hold a run's state") from error
    if schema != SCHEMA:
        raise Damaged(f"it has schema {schema}, this version reads {SCHEMA}")
    return state


class Checkpoints:
    """The last two checkpoints of a run, by the number of steps taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> list[Path]:
        """Newest first."""
        return sorted(self.folder.glob("step-*.pt"), reverse=True)

    def write(self, state: State) -> None:
        self.folder.mkdir(exist_ok=True)
        data = pack(state)
        write_atomically(self.folder / f"step-{state['steps']:012d}.pt", lambda f: f.write(data))
        for old in self.files()[KEPT:]:
            old.unlink()

    def latest(self) -> State | None:
        """The newest one that is whole; None if there is none yet."""
        files = self.files()
        for file in files:
            try:
                return unpack(file.read_bytes())
            except (Damaged, OSError) as error:
                log.warning("checkpoint %s cannot be used: %s; trying the one before", file, error)
        if files:
            raise UserError(f"no checkpoint in {self.folder} is whole: start again with --force")
        return None

    def clear(self) -> None:
        for file in self.files():
            file.unlink()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()
