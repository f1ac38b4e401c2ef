"""CIFAR-10 and CIFAR-100, from the publisher's python or binary files, or from class folders.

The class folders, below train/ and test/, are those of public copies: their names in alphabetical
order are the publisher's order of the classes. The python files are pickles, and a pickle can run
code: only arrays and their types are unpickled.
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
from .cached_stream import cached_stream
from .image_folder import read_folder
from .raw_data import Pixels, RawData, RawPart, blocks_of, read_lines

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
Content = tuple[Pixels, list[int]]


def split_cifar10(
    tasks: int = 5, class_order: Sequence[int] | None = None, *, root: str | None = None
) -> SplitStream:
    """CIFAR-10 by class. root: the data folder, if not the usual one."""
    transform = Augment((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2615), padding=4, flip=True)
    return cached_stream("cifar10", read_cifar10, 32, tasks, class_order, root, transform)


def split_cifar100(
    tasks: int = 10, class_order: Sequence[int] | None = None, *, root: str | None = None
) -> SplitStream:
    """CIFAR-100 by class, in the publisher's order of classes. root: the data folder."""
    transform = Augment((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761), padding=4, flip=True)
    return cached_stream("cifar100", read_cifar100, 32, tasks, class_order, root, transform)


def read_cifar10(folder: Path, size: int = 32) -> RawData:
    if (folder / "train").is_dir():
        return read_folder(folder, size)
    batches = [f"data_batch_{number}" for number in range(1, 6)]
    if (folder / "batches.meta").exists():
        names = _names(folder / "batches.meta", b"label_names")
        return _read(names, folder, batches, ["test_batch"], lambda p: _pickled(p, b"labels"))
    names, train = read_lines(folder / "batches.meta.txt"), [f"{batch}.bin" for batch in batches]
    return _read(names, folder, train, ["test_batch.bin"], lambda p: _binary(p, 1))


def read_cifar100(folder: Path, size: int = 32) -> RawData:
    if (folder / "train").is_dir():
        return read_folder(folder, size)
    if (folder / "meta").exists():
        names = _names(folder / "meta", b"fine_label_names")
        return _read(names, folder, ["train"], ["test"], lambda p: _pickled(p, b"fine_labels"))
    names = read_lines(folder / "fine_label_names.txt")
    # a record: coarse label, fine label, pixels
    return _read(names, folder, ["train.bin"], ["test.bin"], lambda p: _binary(p, 2))


def _read(
    names: list[str],
    folder: Path,
    train: list[str],
    test: list[str],
    read: Callable[[Path], Content],
) -> RawData:
    def part(files: list[str]) -> RawPart:
        contents = [read(folder / name) for name in files]
        labels = [label for _, part in contents for label in part]
        return RawPart(labels, lambda: (b for pixels, _ in contents for b in blocks_of(pixels)))

    return RawData(names, SHAPE, part(train), part(test))


def _binary(path: Path, labels: int) -> Content:
    """A file of records: `labels` bytes, of which the last is the class, and the pixels."""
    try:
        data = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if not len(data) or len(data) % (labels + PIXELS):
        raise UserError(f"{path} is cut off: {len(data):,} bytes are not a whole number of images")
    records = data.reshape(-1, labels + PIXELS)
    return records[:, labels:].reshape(-1, *SHAPE), records[:, labels - 1].tolist()


def _pickled(path: Path, key: bytes) -> Content:
    content = unpickle(path)
    pixels, labels = content.get(b"data"), content.get(key)
    if not (
        isinstance(pixels, np.ndarray)
        and pixels.dtype == np.uint8
        and pixels.shape[1:] == (PIXELS,)
        and isinstance(labels, list)
        and len(labels) == len(pixels)
        and all(isinstance(label, int) and label >= 0 for label in labels)
    ):
        raise UserError(f"{path} does not hold images of {PIXELS} bytes with a class number each")
    return pixels.reshape(-1, *SHAPE), labels


def _names(path: Path, key: bytes) -> list[str]:
    names = unpickle(path).get(key)
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise UserError(f"{path} holds no class names")
    return [name.decode("utf-8", "replace") for name in names]


def unpickle(path: Path) -> dict[bytes, Any]:
    """Read a publisher's pickle; refuse one that asks for anything but arrays."""
    try:
        with path.open("rb") as file:
            content = _ArraysOnly(file, encoding="bytes").load()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except Exception as error:  # a damaged pickle can raise anything
        raise UserError(f"{path} is not a whole CIFAR file: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a CIFAR file")
    # pickles of Python 3 have text where the publisher's have bytes
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}


def _latin1(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding!r}")
    return text.encode("latin1")


_REBUILD: Any = np.empty(0).__reduce__()[0]  # its module differs between versions of numpy
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy._core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
}


class _ArraysOnly(pickle.Unpickler):
    """Unpickles plain values and arrays."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not allowed")
        return _ALLOWED[module, name]
