"""Files and folders: atomic writes, temporary folders, locks, checksums, free space.

A reader never sees half of a file. Modes follow the umask, and locks work on every system.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import UserError

TEMPORARY = ".unfinished-"


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into the sentence "cannot write to PATH: REASON"."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write to {path}: {error.strerror or error}") from None


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that replaces `path` when the block ends; after an error the old content stays.

    Writes a temporary file beside it, flushes it to the disk, renames it, and flushes the folder.
    """
    temporary = path.with_name(f".{path.name}.{_token()}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_atomically(path: Path, data: bytes) -> None:
    with atomic_file(path) as file:
        file.write(data)


def writable_folder(path: Path) -> Path:
    """The folder, created if need be; a UserError if no file can be written to it."""
    with write_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    return path


@contextmanager
def temporary_folder(folder: Path, name: str) -> Iterator[Path]:
    """A folder for building `name` in `folder`; deleted at the end unless it was renamed."""
    path = writable_folder(folder) / f"{TEMPORARY}{name}-{_token()}"
    try:
        with write_errors(folder):
            path.mkdir()
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def remove_empty(*folders: Path) -> None:
    """Delete, one after the other, the folders that are empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def no_link(path: str | Path, flags: int) -> int:
    """Open a file as `os.open` does, but not through a link at its path."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)  # Windows lacks it


def acquire_lock(path: Path, timeout: float = math.inf) -> int:
    """Lock the file, created if need be, against other processes; returns its descriptor.

    The lock ends with `release_lock` or with its process. Raises TimeoutError if another process
    keeps the lock for `timeout` seconds, and FileNotFoundError if its last owner deleted the file
    or its folder.
    """
    from filelock import lock_descriptor  # slow to import

    deadline = time.monotonic() + timeout
    descriptor = no_link(path, os.O_RDWR | os.O_CREAT)
    try:
        while not lock_descriptor(descriptor, blocking=False):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} is locked")
            time.sleep(0.01)
        if not is_same_file(descriptor, path):
            raise FileNotFoundError(f"{path} was replaced")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the path still leads to the open file; False after it was deleted or replaced."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def release_lock(descriptor: int) -> None:
    from filelock import unlock_descriptor

    unlock_descriptor(descriptor)
    os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock.

    The check takes the lock for a moment, which `acquire_lock` waits out. It tries several times,
    because another process's check may hold the lock for a moment too.
    """
    from filelock import lock_descriptor

    with suppress(OSError), path.open("rb") as file:  # no such file: never locked
        for attempt in range(5):
            if lock_descriptor(file.fileno(), blocking=False):
                return False  # closing the file unlocks it
            time.sleep(0.001 * 2**attempt)
        return True
    return False


@contextmanager
def one_builder(folder: Path, name: str) -> Iterator[None]:
    """Let one process at a time build `name` in a folder; others wait.

    Deletes the temporary folders of a killed process. Afterwards deletes the lock, and the folders
    that were created for it and are still empty.
    """
    created = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    path, lock = folder / f".{name}.lock", None
    while lock is None:
        with write_errors(folder), suppress(FileNotFoundError):  # deleted by its last owner
            folder.mkdir(parents=True, exist_ok=True)
            lock = acquire_lock(path)
    try:
        for leftover in folder.glob(f"{TEMPORARY}{name}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield
    finally:
        delete_lock(path)
        release_lock(lock)
        remove_empty(*created)


def delete_lock(path: Path) -> None:
    """Delete the file of a lock that this process holds; a waiting `acquire_lock` notices."""
    with suppress(PermissionError):  # Windows keeps a file that is open
        path.unlink(missing_ok=True)


def checksum(path: Path, algorithm: str = "sha256") -> str:
    """Hexadecimal digest of a file's content.

    >>> import tempfile, pathlib
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     checksum(pathlib.Path(file.name), "md5")
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return digest.hexdigest()


def check_free_space(folder: Path, needed: int) -> None:
    """Refuse if the folder's disk has fewer than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder} has {free / 1e9:.1f} GB free, but {needed / 1e9:.1f} GB are needed"
        )


def _token() -> str:
    return uuid.uuid4().hex[:8]
