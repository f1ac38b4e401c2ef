"""Decode once: the pixels of a data set in plain files that are mapped, not read, into memory.

A cache is a folder with train_x.npy, test_x.npy (n, C, H, W) uint8, train_y.npy, test_y.npy, and
about.json. It appears all at once, belongs to one state of one source at one size, and is made anew
when the source changes. Training touches the rows it draws and nothing else, so that the data may
be larger than the machine's memory; making it holds one block at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from torch import Tensor

from ...errors import UserError
from ..datasets.reader import Part, Reading
from ..splitting import Images, as_tensor
from .folders import enough_room, locked, remove_empty, unfinished
from .location import cache_folder
from .work_progress import Lines, Report

VERSION = 1
PARTS = ("train", "test")


@dataclass(frozen=True)
class Cached:
    """A data set ready for use. mean, std: of the training pixels, per channel, in 0…1."""

    train: Images
    test: Images
    names: Sequence[str]
    mean: Sequence[float]
    std: Sequence[float]


def cached(
    name: str,
    source: Path,
    size: int,
    read: Callable[[Path, int], Reading],
    *,
    root: str | Path | None = None,
    report: Report | None = None,
) -> Cached:
    """The images of `source` at this size, from the cache, which is made if need be.

    read: gets the source and the size, and is only called where there is no cache yet.
    """
    caches = cache_folder(root)
    state = fingerprint(source)
    key = hashlib.sha256(f"{VERSION} {source.resolve()} {state}".encode()).hexdigest()[:12]
    series = f"{name}-{size}px"
    folder = caches / f"{series}-{key}"
    if (ready := _open(folder)) is not None:
        return ready
    with locked(caches, series):
        if (ready := _open(folder)) is None:  # else another process was faster
            reading = read(source, size)
            with unfinished(caches, series) as work:
                _write(work, reading, name, source, report or Lines())
                shutil.rmtree(folder, ignore_errors=True)  # a broken one
                os.rename(work, folder)
            _forget_others(folder, source)
            ready = _open(folder)
    if ready is None:
        raise UserError(f"{folder} cannot be read back: is the disk full or broken?")
    return ready


def fingerprint(source: Path) -> str:
    """Path, size and time of change of every file below a folder: another state, another one.

    The same however one gets there: a link to a folder must not throw away the folder's own cache.
    """
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(source.resolve(), followlinks=True):
        folders.sort()
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in sorted(files):
            path = os.path.join(folder, name)
            try:
                status = os.stat(path)
            except OSError:
                continue  # a link into nowhere
            state = f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n"
            digest.update(os.fsencode(state))  # names need not be UTF-8
    return digest.hexdigest()


def _open(folder: Path) -> Cached | None:
    """The cache, or None where there is none that is whole."""
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        train, test = (Images(mapped(folder / f"{p}_x.npy"), _labels(folder, p)) for p in PARTS)
        return Cached(train, test, about["names"], about["mean"], about["std"])
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return None


def mapped(path: Path) -> Tensor:
    """An array file as a tensor whose rows are read when they are touched. Not to be written to.

    Read-only and shared: a private mapping that could be written to would have to fit into memory.
    """
    return as_tensor(np.load(path, mmap_mode="r", allow_pickle=False))


def _labels(folder: Path, part: str) -> Tensor:
    return as_tensor(np.load(folder / f"{part}_y.npy", allow_pickle=False))


def _write(work: Path, reading: Reading, name: str, source: Path, report: Report) -> None:
    row = int(np.prod(reading.shape))
    counts = {part: len(getattr(reading, part).labels) for part in PARTS}
    enough_room(work, row * sum(counts.values()))
    what, done, total = f"decoding {name}", 0, sum(counts.values())
    moments = _Moments(reading.shape[0])
    for part in PARTS:
        content: Part = getattr(reading, part)
        _check_labels(name, part, content.labels, reading.names)
        with _synced(work / f"{part}_y.npy") as file:
            np.save(file, np.asarray(content.labels, dtype=np.int64))
        with _synced(work / f"{part}_x.npy") as file:
            shape = (counts[part], *reading.shape)
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, header)
            written = 0
            for block in content.blocks():
                file.write(np.ascontiguousarray(block, dtype=np.uint8).data)
                written += len(block)
                report(what, done + written, total)
                if part == "train":
                    moments.add(block)
        if written != counts[part]:
            raise UserError(f"{name}: {counts[part]} {part} labels, but {written} images")
        done += written
    about: dict[str, Any] = {"source": str(source.resolve()), "names": list(reading.names)}
    about |= {"mean": moments.mean.tolist(), "std": moments.std.tolist()}
    with _synced(work / "about.json") as file:
        file.write(json.dumps(about, ensure_ascii=False).encode())


@contextmanager
def _synced(path: Path) -> Iterator[IO[bytes]]:
    """A file that is on the disk when it is closed: a power cut must not leave an empty one."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _check_labels(name: str, part: str, labels: Sequence[int], names: Sequence[str]) -> None:
    counts = np.bincount(np.asarray(labels, dtype=np.int64), minlength=len(names))
    kind = "training" if part == "train" else "test"
    if len(counts) > len(names):
        raise UserError(f"{name}: label {len(counts) - 1} is beyond the {len(names)} classes")
    if not counts.all():
        raise UserError(f"{name}: class {names[int(counts.argmin())]!r} has no {kind} images")


class _Moments:
    """Mean and standard deviation per channel, in whole numbers until the end."""

    def __init__(self, channels: int) -> None:
        self._sums = [np.zeros(channels, dtype=np.uint64) for _ in range(2)]
        self._pixels = 0

    def add(self, block: np.ndarray[Any, Any]) -> None:
        for power, total in enumerate(self._sums, 1):
            total += (block.astype(np.uint16) ** power).sum((0, 2, 3), dtype=np.uint64)
        self._pixels += block[:, 0].size

    @property
    def mean(self) -> np.ndarray[Any, Any]:
        return self._sums[0] / max(1, self._pixels) / 255

    @property
    def std(self) -> np.ndarray[Any, Any]:
        variance = self._sums[1] / max(1, self._pixels) / 255**2 - self.mean**2
        return np.sqrt(variance.clip(1e-6))  # one colour all over must not divide by zero


def _forget_others(folder: Path, source: Path) -> None:
    """Remove caches of the same source and size in an earlier state."""
    prefix = folder.name.rpartition("-")[0]
    for other in _caches_of(source, folder.parent, f"{prefix}-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def forget(source: Path, root: str | Path | None = None) -> None:
    """Remove all caches of a source, which need not be there any more."""
    caches = cache_folder(root)
    for folder in _caches_of(source, caches):
        shutil.rmtree(folder, ignore_errors=True)
    remove_empty(caches)


def _caches_of(source: Path, caches: Path, pattern: str = "*") -> Iterator[Path]:
    for folder in caches.glob(pattern):
        try:
            about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if about.get("source") == str(source.resolve()):
            yield folder
