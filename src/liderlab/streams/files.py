"""Writing so that nobody ever sees half of a file or folder, and one writer at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import UserError

UNFINISHED = ".unfinished-"


def make_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to {path}: {error.strerror}") from None
    return path


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """Be the only one who makes `name` in that folder; others wait. Dies with its process.

    What an earlier, killed writer of that name left behind is removed.
    """
    make_folder(folder)
    try:
        handle = os.open(folder / f".{name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for left in folder.glob(f"{UNFINISHED}{name}-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(handle)


@contextmanager
def unfinished(folder: Path, name: str) -> Iterator[Path]:
    """A temporary folder to work in; whatever is left in it at the end goes."""
    path = Path(tempfile.mkdtemp(dir=make_folder(folder), prefix=f"{UNFINISHED}{name}-"))
    path.chmod(0o755)
    try:
        yield path
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(path, ignore_errors=True)


def md5_of(path: Path) -> str:
    """
    >>> import tempfile, pathlib
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     md5_of(pathlib.Path(file.name))
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    with path.open("rb") as file:  # a mark of identity, not of security
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def enough_room(folder: Path, needed: int) -> None:
    """Refuse to begin what cannot end."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder} has {free / 1e9:.1f} GB free, but {needed / 1e9:.1f} GB are needed"
        )
