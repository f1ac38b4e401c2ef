"""A data set as its files hold it: names and labels at once, pixels block by block."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import UserError
from .catalogue import IMAGE_SUFFIXES
from .image_decoding import decode

Pixels = NDArray[np.uint8]
LabelledFiles = list[tuple[Path, int]]
BLOCK_BYTES = 16_000_000
THREADS, FILES_PER_JOB = 4, 32


@dataclass(frozen=True)
class RawPart:
    """Training or test images. blocks: makes an iterator over (k, C, H, W), in label order."""

    labels: Sequence[int]
    blocks: Callable[[], Iterable[Pixels]]


@dataclass(frozen=True)
class RawData:
    """names: of the classes. shape: (C, H, W) of every image."""

    names: Sequence[str]
    shape: tuple[int, int, int]
    train: RawPart
    test: RawPart


def from_image_files(
    names: Sequence[str], train: LabelledFiles, test: LabelledFiles, size: int
) -> RawData:
    """Image files with their labels; decoded to size x size in colour when read."""

    def part(files: LabelledFiles) -> RawPart:
        return RawPart([label for _, label in files], lambda: _decoded(files, size))

    return RawData(names, (3, size, size), part(train), part(test))


def _decoded(files: LabelledFiles, size: int) -> Iterator[Pixels]:
    """Blocks of decoded images; Pillow releases Python's lock, so a few threads help."""
    step = rows_per_block((3, size, size))
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as threads:
        for start in range(0, len(files), step):
            paths = [path for path, _ in files[start : start + step]]
            block = np.empty((len(paths), 3, size, size), dtype=np.uint8)

            def fill(first: int, paths: list[Path] = paths, block: Pixels = block) -> None:
                for i in range(first, min(first + FILES_PER_JOB, len(paths))):
                    block[i] = decode_image(paths[i], size)

            list(threads.map(fill, range(0, len(block), FILES_PER_JOB)))
            yield block


def decode_image(path: Path, size: int) -> Pixels:
    """One file as (3, size, size)."""
    try:
        return decode(path, (3, size, size))
    except FileNotFoundError:
        raise UserError(f"{path} is missing: the data set is not complete") from None


def blocks_of(pixels: Pixels) -> Iterator[Pixels]:
    """Slices of bounded size of an array, which may be memory-mapped."""
    step = rows_per_block(pixels.shape[1:])
    for start in range(0, len(pixels), step):
        yield pixels[start : start + step]


def rows_per_block(shape: tuple[int, ...]) -> int:
    return max(1, BLOCK_BYTES // math.prod(shape))


def read_lines(path: Path) -> list[str]:
    """The lines of an index file that are not blank."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(f"{path.parent} has no {path.name}: it is not complete") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    return [line for line in lines if line.strip()]


def image_files(folder: Path) -> list[Path]:
    """The images in a folder, sorted by name; hidden files and other types are skipped."""
    names = sorted(os.listdir(folder))
    shown = (name for name in names if not name.startswith("."))
    return [folder / n for n in shown if os.path.splitext(n)[1].lower() in IMAGE_SUFFIXES]
