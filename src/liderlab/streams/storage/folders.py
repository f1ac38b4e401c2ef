"""Writing so that nobody ever sees half of a file or folder, and one writer at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import UserError

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

    What an earlier, killed writer of that name left behind is removed. Afterwards the lock goes,
    and so do the folders that were made for it if nothing came into them.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    path = folder / f".{name}.lock"
    handle = _lock(path)
    try:
        for left in folder.glob(f"{UNFINISHED}{name}-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: who waits for it will look again
        os.close(handle)
        remove_empty(*made)


def _lock(path: Path) -> int:
    """A handle on the file of that name, locked; not on one that its last owner has removed."""
    while True:
        make_folder(path.parent)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue  # whoever had the lock has just removed the empty folder
        except OSError as error:
            raise UserError(f"cannot write to {path.parent}: {error.strerror}") from None
        fcntl.flock(handle, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)


def remove_empty(*folders: Path) -> None:
    """Those of them, one after the other, that have nothing in them."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


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
