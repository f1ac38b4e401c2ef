"""What a reader hands over: names and labels at once, pixels block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import UserError
from .catalogue import IMAGE_SUFFIXES

Pixels = NDArray[np.uint8]
BLOCK_BYTES = 16_000_000
THREADS, AT_ONCE = 4, 32


@dataclass(frozen=True)
class Part:
    """labels: of every image. blocks: makes an iterator over (k, C, H, W), in the same order."""

    labels: Sequence[int]
    blocks: Callable[[], Iterable[Pixels]]


@dataclass(frozen=True)
class Reading:
    """A data set as its files tell it. shape: (C, H, W) of every image."""

    names: Sequence[str]
    shape: tuple[int, int, int]
    train: Part
    test: Part


def images_of(files: Sequence[tuple[Path, int]], size: int) -> Part:
    """Image files with their labels, decoded as size x size in colour when their turn comes."""
    paths = [path for path, _ in files]
    return Part([label for _, label in files], lambda: _decoded(paths, size))


def _decoded(paths: Sequence[Path], size: int) -> Iterator[Pixels]:
    """Block by block; Pillow decodes outside Python's lock, so a few threads help."""
    step = rows_per_block((3, size, size))
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as threads:
        for start in range(0, len(paths), step):
            block = np.empty((len(paths[start : start + step]), 3, size, size), dtype=np.uint8)

            def fill(first: int, start: int = start, block: Pixels = block) -> None:
                for place in range(first, min(first + AT_ONCE, len(block))):
                    block[place] = decode(paths[start + place], size)

            for _ in threads.map(fill, range(0, len(block), AT_ONCE)):
                pass
            yield block


def decode(path: Path, size: int) -> Pixels:
    """One file as (3, size, size). Other shapes are stretched, as `lider predict` does."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            colour = picture.convert("RGB")
        if colour.size != (size, size):
            colour = colour.resize((size, size))
    except FileNotFoundError:
        raise UserError(f"{path} is missing: the data set is not complete") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UserError(f"cannot read {path} as an image: {error}") from None
    return np.asarray(colour, dtype=np.uint8).transpose(2, 0, 1)


def blocks_of(pixels: Pixels) -> Iterator[Pixels]:
    """An array, which may be a file's, in pieces of bounded size."""
    step = rows_per_block(pixels.shape[1:])
    for start in range(0, len(pixels), step):
        yield pixels[start : start + step]


def rows_per_block(shape: tuple[int, ...]) -> int:
    return max(1, BLOCK_BYTES // int(np.prod(shape)))


def read_lines(path: Path) -> list[str]:
    """The lines of an index file that are not empty."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(f"{path.parent} has no {path.name}: it is not complete") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    return [line for line in lines if line.strip()]


def image_files(folder: Path) -> list[Path]:
    """The images of a folder by name; hidden files and other kinds are passed over."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    return [
        folder / name
        for name in names
        if not name.startswith(".") and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES
    ]


def distinct(names: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Names for people, with the id added where two classes share one.

    >>> distinct(["crane", "cat", "crane"], ["n1", "n2", "n3"])
    ['crane (n1)', 'cat', 'crane (n3)']
    """
    counts = {name: names.count(name) for name in names}
    pairs = zip(names, ids, strict=True)
    return [name if counts[name] == 1 else f"{name} ({id_})" for name, id_ in pairs]
