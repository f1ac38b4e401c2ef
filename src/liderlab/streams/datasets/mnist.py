"""MNIST and Fashion-MNIST, from the publishers' IDX files, compressed or not."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import UserError
from ..augmentation import Augment
from ..domains import in_domains, permutations, rotations
from ..splitting import SplitStream
from .cached_stream import cached_stream
from .raw_data import Pixels, RawData, RawPart, blocks_of

DIGITS = [str(digit) for digit in range(10)]
CLOTHES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"]
CLOTHES += ["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
UINT8 = 0x08  # IDX's code of the type
MOST = 2**30  # bytes in a file; MNIST has 47 million


def split_mnist(
    tasks: int = 5, class_order: Sequence[int] | None = None, *, root: str | None = None
) -> SplitStream:
    """MNIST by digit, not augmented. root: the data folder, if not the usual one."""
    transform = Augment((0.1307,), (0.3081,))
    return cached_stream("mnist", read_mnist, 28, tasks, class_order, root, transform)


def rotated_mnist(
    tasks: int = 20,
    class_order: Sequence[int] | None = None,
    *,
    degrees: float = 180.0,
    root: str | None = None,
) -> SplitStream:
    """All digits in every task, turned by 0, d/T, 2d/T, … degrees."""
    turns = rotations(tasks, degrees)
    return in_domains(split_mnist(1, class_order, root=root), turns)


def permuted_mnist(
    tasks: int = 20,
    class_order: Sequence[int] | None = None,
    *,
    seed: int = 0,
    root: str | None = None,
) -> SplitStream:
    """All digits in every task, from the second on with pixels in an order of its own. seed: of
    these orders."""
    orders = permutations(tasks, seed, (1, 28, 28))
    return in_domains(split_mnist(1, class_order, root=root), orders)


def split_fashion_mnist(
    tasks: int = 5, class_order: Sequence[int] | None = None, *, root: str | None = None
) -> SplitStream:
    """Fashion-MNIST by class, not augmented. root: the data folder, if not the usual one."""
    transform = Augment((0.2860,), (0.3530,))
    return cached_stream("fashion-mnist", read_fashion, 28, tasks, class_order, root, transform)


def read_mnist(folder: Path, size: int = 28) -> RawData:
    return RawData(DIGITS, (1, 28, 28), _part(folder, "train"), _part(folder, "t10k"))


def read_fashion(folder: Path, size: int = 28) -> RawData:
    return RawData(CLOTHES, (1, 28, 28), _part(folder, "train"), _part(folder, "t10k"))


def _part(folder: Path, part: str) -> RawPart:
    images = read_idx(_file(folder, f"{part}-images*idx3*"), 3)
    labels = read_idx(_file(folder, f"{part}-labels*idx1*"), 1)
    if images.shape != (len(labels), 28, 28):
        raise UserError(f"{folder}: {len(labels)} {part} labels, but images {images.shape}")
    return RawPart(labels.tolist(), lambda: blocks_of(images[:, None]))


def _file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise UserError(f"{folder} has no {pattern}: it is not complete")
    return found[0]


def read_idx(path: Path, dimensions: int) -> Pixels:
    """An IDX file of bytes: zero, zero, type, number of dimensions, their sizes, the values.

    Reads no more than the sizes announce: a small compressed file can hold any number of bytes.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(4 + 4 * dimensions)
            if len(head) < 4 + 4 * dimensions or head[:4] != bytes([0, 0, UINT8, dimensions]):
                raise UserError(f"{path} is not an IDX file of {dimensions} dimension(s)")
            shape = [int(n) for n in np.frombuffer(head, dtype=">u4", offset=4)]
            if math.prod(shape) > MOST:
                raise UserError(f"{path} announces {shape} values: at most {MOST:,} are read")
            content = file.read(math.prod(shape))
            longer = bool(file.read(1))
    except (EOFError, zlib.error, OSError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    if len(content) < math.prod(shape) or longer:
        found = "more" if longer else f"{len(content):,}"
        raise UserError(f"{path} is damaged: {found} values instead of {shape}")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
