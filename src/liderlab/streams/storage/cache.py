"""The cache of decoded images: plain array files that are mapped, not read, into memory.

A cache is a folder with train_x.npy, test_x.npy (n, C, H, W) uint8, train_y.npy, test_y.npy and
about.json. It belongs to one state of one source at one size, appears by one rename, and is made
anew when the source changes. Training reads only the rows it draws, and writing holds one block at
a time: the data may be larger than the machine's memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...errors import UserError
from ...files import check_free_space, one_builder, temporary_folder
from ..datasets.raw_data import RawData
from ..splitting import Images
from .location import cache_folder
from .work_progress import ProgressLines, Report

VERSION = 2  # 2: images of 16 bits are rescaled
DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError)


@dataclass(frozen=True)
class CachedData:
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
    read: Callable[[Path, int], RawData],
    *,
    root: str | Path | None = None,
    report: Report | None = None,
) -> CachedData:
    """Return the images of `source` at this size from the cache, which is made if necessary.

    read: called with the source and the size, only if there is no cache yet.
    """
    caches = cache_folder(root)
    state = state_of_files(source)
    key = hashlib.sha256(f"{VERSION} {source.resolve()} {state}".encode()).hexdigest()[:12]
    series = f"{name}-{size}px"
    folder = caches / f"{series}-{key}"
    if (data := _open(folder)) is not None:
        return data
    with one_builder(caches, series):
        if (data := _open(folder)) is None:  # else another process has just made it
            raw = read(source, size)
            with temporary_folder(caches, series) as work:
                _write(work, raw, name, source, report or ProgressLines())
                shutil.rmtree(folder, ignore_errors=True)  # a damaged cache
                os.rename(work, folder)
            delete_caches(source, caches, f"{series}-*", keep=folder)
            data = _open(folder)
    if data is None:
        raise UserError(f"{folder} cannot be read back: is the disk full or broken?")
    return data


def state_of_files(source: Path) -> str:
    """Digest of path, size and time of change of every file below a folder.

    Links are resolved first, so that a link to a folder uses the folder's own cache. A folder that
    several links lead to is walked once: links may form a circle.
    """
    digest, seen = hashlib.sha256(), set()
    for folder, folders, files in os.walk(source.resolve(), followlinks=True):
        if (real := os.path.realpath(folder)) in seen:
            digest.update(os.fsencode(f"{folder}\0{real}\n"))
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in sorted(files):
            path = os.path.join(folder, name)
            with suppress(OSError):  # a dangling link
                status = os.stat(path)
                state = f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n"
                digest.update(os.fsencode(state))  # names need not be UTF-8
    return digest.hexdigest()


def delete_caches(source: Path, caches: Path, pattern: str = "*", keep: Path | None = None) -> None:
    """Delete the caches of a source, which may itself be gone, except `keep`."""
    for folder in caches.glob(pattern):
        with suppress(*DAMAGED):
            about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
            if about["source"] == str(source.resolve()) and folder != keep:
                shutil.rmtree(folder, ignore_errors=True)


def _open(folder: Path) -> CachedData | None:
    """The cache, or None if it is absent or damaged."""
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        train, test = (_images(folder, part) for part in ("train", "test"))
        return CachedData(train, test, about["names"], about["mean"], about["std"])
    except DAMAGED:
        return None


def _images(folder: Path, part: str) -> Images:
    """Pixels are mapped read-only and shared: a private mapping would have to fit into memory."""
    x = np.load(folder / f"{part}_x.npy", mmap_mode="r", allow_pickle=False)
    return Images(x, np.load(folder / f"{part}_y.npy", allow_pickle=False))


def _write(work: Path, raw: RawData, name: str, source: Path, report: Report) -> None:
    total, done = len(raw.train.labels) + len(raw.test.labels), 0
    check_free_space(work, math.prod(raw.shape) * total)
    histogram = np.zeros((raw.shape[0], 256), dtype=np.int64)  # of the training pixels
    for part, content in (("train", raw.train), ("test", raw.test)):
        with _synced(work / f"{part}_y.npy") as file:
            np.save(file, np.asarray(content.labels, dtype=np.int64))
        count, written = len(content.labels), 0
        with _synced(work / f"{part}_x.npy") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (count, *raw.shape)}
            npy.write_array_header_1_0(file, header)
            for block in content.blocks():
                file.write(np.ascontiguousarray(block, dtype=np.uint8).data)
                written += len(block)
                report(f"decoding {name}", done + written, total)
                if part == "train":
                    for c, counts in enumerate(histogram):
                        counts += np.bincount(block[:, c].ravel(), minlength=256)
        if written != count:
            raise UserError(f"{name}: {count} {part} labels, but {written} images")
        done += written
    mean, std = _mean_and_std(histogram)
    about = {"source": str(source.resolve()), "names": list(raw.names), "mean": mean, "std": std}
    with _synced(work / "about.json") as file:
        file.write(json.dumps(about, ensure_ascii=False).encode())


@contextmanager
def _synced(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is on the disk when closed: a power cut must not leave an empty one."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _mean_and_std(histogram: NDArray[np.int64]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation in 0…1 of every channel, from (C, 256) counts of its values."""
    values, pixels = np.arange(256), max(1, int(histogram[0].sum()))
    mean = histogram @ values / pixels / 255
    variance = histogram @ values**2 / pixels / 255**2 - mean**2
    return mean.tolist(), np.sqrt(variance.clip(1e-6)).tolist()  # no division by zero later
