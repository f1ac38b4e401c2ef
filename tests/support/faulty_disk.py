"""A layer between Python and the disk that fails one operation of a folder, or ends the process.

Operations: opening a file for writing, writing, cutting, flushing to the disk, renaming, deleting,
and making a folder. They are numbered in their order, so that a test can fail each of them once.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BUFFER = 8192  # bytes, as Python's own files
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "short": errno.ENOSPC}
FAULTS = (*ERRORS, "crash", "crash after", "power cut")
"""ENOSPC, EIO: the operation fails. short: a write stores half of its bytes, then fails.
crash: the process ends before the operation; crash after: right after it. power cut: as crash
after, and bytes that were not flushed to the disk are lost."""


class Crash(BaseException):
    """Stands for the end of the process: nothing is written any more."""


class FaultyDisk:
    """log: the operations so far, as (name, file name)."""

    def __init__(self, root: Path, fail_at: int | None = None, fault: str = "") -> None:
        self.root, self.fail_at, self.fault = os.path.realpath(root), fail_at, fault
        self.log: list[tuple[str, str]] = []
        self.dead = False
        self._files: dict[int, str] = {}  # descriptors of our files
        self._synced: dict[int, tuple[str, int]] = {}  # by inode: path, bytes on the disk

    def inside(self, path: Any) -> bool:
        if not isinstance(path, (str, os.PathLike)):
            return False
        whole = os.path.abspath(os.fspath(path))
        return whole.startswith(self.root) and not whole.endswith(".lock")

    def operation(
        self, name: str, path: str, act: Callable[[], Any], half: Callable[[], Any] | None = None
    ) -> Any:
        """Act, unless this is the operation to fail. half: a part of the action."""
        if self.dead:
            raise Crash
        number = len(self.log)
        self.log.append((name, os.path.basename(path)))
        if number != self.fail_at:
            return act()
        if self.fault in ERRORS:
            if self.fault == "short" and half:
                half()
            code = ERRORS[self.fault]
            raise OSError(code, os.strerror(code))
        if self.fault != "crash":
            act()
        self.dead = True
        if self.fault == "power cut":
            for file, size in self._synced.values():
                if os.path.exists(file) and os.path.getsize(file) > size:
                    os.truncate(file, size)
        raise Crash

    def opened(self, descriptor: int, path: str) -> None:
        self._files[descriptor] = path
        status = os.fstat(descriptor)  # its inode may have belonged to a deleted file
        self._synced[status.st_ino] = (path, status.st_size)

    def synced(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if status.st_ino in self._synced:
            self._synced[status.st_ino] = (self._synced[status.st_ino][0], status.st_size)

    def renamed(self, new: str) -> None:
        inode = os.stat(new).st_ino
        size = self._synced.get(inode, (new, os.path.getsize(new)))[1]
        replaced = [other for other, (path, _) in self._synced.items() if path == new]
        for other in replaced:
            del self._synced[other]
        self._synced[inode] = (new, size)

    def path_of(self, descriptor: int) -> str | None:
        return self._files.get(descriptor)


class FaultyFile:
    """A file opened for writing: its bytes go through the disk in blocks."""

    def __init__(self, disk: FaultyDisk, descriptor: int, path: str, text: bool) -> None:
        self._disk, self._path, self._text = disk, path, text
        self._raw = io.FileIO(descriptor, "w")
        self._rest = b""
        disk.opened(descriptor, path)

    def write(self, data: Any) -> int:
        self._rest += data.encode() if self._text else bytes(data)
        if len(self._rest) >= BUFFER:
            self.flush()
        return len(data)

    def flush(self) -> None:
        if data := self._rest:
            self._rest = b""
            self._disk.operation(
                "write",
                self._path,
                lambda: self._raw.write(data),
                lambda: self._raw.write(data[: len(data) // 2]),
            )

    def truncate(self, size: int) -> None:
        self.flush()
        self._disk.operation("truncate", self._path, lambda: self._raw.truncate(size))

    def seek(self, *arguments: int) -> int:
        self.flush()
        return self._raw.seek(*arguments)

    def tell(self) -> int:
        return self._raw.tell() + len(self._rest)

    def fileno(self) -> int:
        return self._raw.fileno()

    def close(self) -> None:
        try:
            if not self._raw.closed:
                self.flush()
        finally:
            self._raw.close()

    def __enter__(self) -> FaultyFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def faulty(disk: FaultyDisk) -> Iterator[None]:
    """Send the operations below the disk's root through it."""
    real = {name: getattr(os, name) for name in CALLS}
    real_open = io.open

    def open_file(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if not set(mode) & set("wax") or not disk.inside(file):
            return real_open(file, mode, *rest, **options)
        flags = os.O_WRONLY | os.O_CREAT
        flags |= os.O_TRUNC if "w" in mode else os.O_EXCL if "x" in mode else os.O_APPEND
        descriptor = disk.operation("open", file, lambda: real["open"](file, flags, 0o666))
        return FaultyFile(disk, descriptor, os.fspath(file), "b" not in mode)

    def open_descriptor(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if not flags & (os.O_WRONLY | os.O_RDWR) or not disk.inside(path):
            return int(real["open"](path, flags, *rest, **options))
        act = lambda: real["open"](path, flags, *rest, **options)  # noqa: E731
        descriptor = int(disk.operation("open", os.fspath(path), act))
        disk.opened(descriptor, os.fspath(path))
        return descriptor

    def as_file(descriptor: int, mode: str = "r", *rest: Any, **options: Any) -> Any:
        path = disk.path_of(descriptor)
        if path is None or not set(mode) & set("wa"):
            return real["fdopen"](descriptor, mode, *rest, **options)
        return FaultyFile(disk, descriptor, path, "b" not in mode)

    def write_at(descriptor: int, data: Any, offset: int) -> int:
        path = disk.path_of(descriptor)
        act = lambda: real["pwrite"](descriptor, data, offset)  # noqa: E731
        half = lambda: real["pwrite"](descriptor, data[: len(data) // 2], offset)  # noqa: E731
        return int(act() if path is None else disk.operation("write", path, act, half))

    def sync(descriptor: int) -> None:
        def act() -> None:
            real["fsync"](descriptor)
            disk.synced(descriptor)

        path = os.path.realpath(f"/proc/self/fd/{descriptor}")
        if disk.inside(path):
            disk.operation("fsync", path, act)
        else:
            act()

    def rename(old: Any, new: Any, **options: Any) -> None:
        def act() -> None:
            real["replace"](old, new, **options)
            disk.renamed(os.fspath(new))

        if disk.inside(new):
            disk.operation("rename", os.fspath(new), act)
        else:
            real["replace"](old, new, **options)

    def simple(name: str) -> Callable[..., Any]:
        def call(path: Any, *rest: Any, **options: Any) -> Any:
            act = lambda: real[name](path, *rest, **options)  # noqa: E731
            return disk.operation(name, os.fspath(path), act) if disk.inside(path) else act()

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", open_file)
        patch.setattr(builtins, "open", open_file)
        for name, call in {
            "open": open_descriptor,
            "fdopen": as_file,
            "pwrite": write_at,
            "fsync": sync,
            "replace": rename,
            "rename": rename,
            **{name: simple(name) for name in ("unlink", "mkdir", "rmdir")},
        }.items():
            patch.setattr(os, name, call)
        yield


CALLS = ("open", "fdopen", "pwrite", "fsync", "replace", "unlink", "mkdir", "rmdir")
