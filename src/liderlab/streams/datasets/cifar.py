"""CIFAR-10 and CIFAR-100, from the publisher's python or binary files.

The python files are pickles. A pickle is a program, so it runs here with nothing in its reach but
what these files need: arrays and their types.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UserError
from ..augmentation import Augment
from ..splitting import SplitStream
from .published import split_published
from .reader import Part, Pixels, Reading, blocks_of, read_lines

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32


def split_cifar10(
    tasks: int = 5, class_order: Sequence[int] | None = None, *, root: str | None = None
) -> SplitStream:
    """CIFAR-10 by class. root: the data folder, if not the usual one."""
    transform = Augment((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2615), padding=4, flip=True)
    return split_published("cifar10", read_cifar10, 32, tasks, class_order, root, transform)


def split_cifar100(
    tasks: int = 10, class_order: Sequence[int] | None = None, *, root: str | None = None
) -> SplitStream:
    """CIFAR-100 by class, in the publisher's order of classes. root: the data folder."""
    transform = Augment((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761), padding=4, flip=True)
    return split_published("cifar100", read_cifar100, 32, tasks, class_order, root, transform)


def read_cifar10(folder: Path, size: int = 32) -> Reading:
    batches = [f"data_batch_{number}" for number in range(1, 6)]
    if (folder / "batches.meta").exists():
        names = _names(folder / "batches.meta", b"label_names")
        return _reading(names, folder, batches, ["test_batch"], lambda p: _pickled(p, b"labels"))
    names = read_lines(folder / "batches.meta.txt")
    train = [f"{batch}.bin" for batch in batches]
    return _reading(names, folder, train, ["test_batch.bin"], lambda p: _binary(p, 1))


def read_cifar100(folder: Path, size: int = 32) -> Reading:
    if (folder / "meta").exists():
        names = _names(folder / "meta", b"fine_label_names")
        return _reading(names, folder, ["train"], ["test"], lambda p: _pickled(p, b"fine_labels"))
    names = read_lines(
        folder / "fine_label_names.txt"
    )  # a record: coarse label, fine label, pixels
    return _reading(names, folder, ["train.bin"], ["test.bin"], lambda p: _binary(p, 2))


Content = tuple[Pixels, list[int]]


def _reading(
    names: list[str],
    folder: Path,
    train: list[str],
    test: list[str],
    read: Callable[[Path], Content],
) -> Reading:
    return Reading(names, SHAPE, _part(folder, train, read), _part(folder, test, read))


def _part(folder: Path, files: list[str], read: Callable[[Path], Content]) -> Part:
    contents = [read(folder / name) for name in files]
    labels = [label for _, part in contents for label in part]
    return Part(labels, lambda: (b for pixels, _ in contents for b in blocks_of(pixels)))


def _binary(path: Path, labels: int) -> Content:
    try:
        data = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if not len(data) or len(data) % (labels + PIXELS):
        raise UserError(f"{path} is cut off: {len(data):,} bytes are no whole number of images")
    records = data.reshape(-1, labels + PIXELS)
    return records[:, labels:].reshape(-1, *SHAPE), records[:, labels - 1].tolist()


def _pickled(path: Path, key: bytes) -> Content:
    content = unpickle(path)
    pixels, labels = content.get(b"data"), content.get(key)
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise UserError(f"{path} holds no array of pixels")
    if pixels.shape[1] != PIXELS:
        raise UserError(f"{path} holds images of {pixels.shape[1]} bytes instead of {PIXELS}")
    if not isinstance(labels, list) or len(labels) != len(pixels):
        raise UserError(f"{path} holds no label for each of its {len(pixels)} images")
    if not all(isinstance(label, int) and label >= 0 for label in labels):
        raise UserError(f"{path} holds labels that are no class numbers")
    return pixels.reshape(-1, *SHAPE), labels


def _names(path: Path, key: bytes) -> list[str]:
    names = unpickle(path).get(key)
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise UserError(f"{path} holds no names of classes")
    return [name.decode("utf-8", "replace") for name in names]


def unpickle(path: Path) -> dict[bytes, Any]:
    """A publisher's pickle, refused if it asks for anything but arrays."""
    try:
        with path.open("rb") as file:
            content = _ArraysOnly(file, encoding="bytes").load()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise UserError(f"{path} is not a whole CIFAR file: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a CIFAR file")
    # Python 3's pickles have text where the publisher's have bytes
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}


def _latin1(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding!r}")
    return text.encode("latin1")


_REBUILD: Any = np.empty(0).__reduce__()[0]  # its home moved between versions of numpy
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy._core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
}


class _ArraysOnly(pickle.Unpickler):
    """Knows how arrays are rebuilt, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no such file needs")
        return _ALLOWED[module, name]
