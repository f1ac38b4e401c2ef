"""mini-ImageNet: 100 classes of 84x84, as class folders or as arrays.

There is no official file. These forms are accepted:

- train_x.npy, train_y.npy, test_x.npy, test_y.npy, as the LiDER authors have them;
- train/ and test/, or train/ and val/, with the same classes;
- train/, val/ and test/ of few-shot learning, whose classes differ, or plain class folders: every
  sixth image of a class is for testing (100 of 600).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import UserError
from ..augmentation import Augment
from ..splitting import SplitStream
from .cached_stream import cached_stream
from .image_folder import class_folders, log, read_folder, split_classes
from .raw_data import Pixels, RawData, RawPart, blocks_of

EVERY = 6


def split_miniimagenet(
    tasks: int = 20, class_order: Sequence[int] | None = None, *, root: str | None = None
) -> SplitStream:
    """mini-ImageNet by class at 84x84. root: the data folder, if not the usual one."""
    transform = Augment((0.4731, 0.4491, 0.4038), (0.2729, 0.2656, 0.2795), padding=4, flip=True)
    return cached_stream("miniimagenet", read_mini, 84, tasks, class_order, root, transform)


def read_mini(folder: Path, size: int) -> RawData:
    if (folder / "train_x.npy").exists():
        train, test = (_array_part(folder, part, size) for part in ("train", "test"))
        names = [str(c) for c in range(max(*train.labels, *test.labels) + 1)]
        return RawData(names, (3, size, size), train, test)
    parts = [folder / name for name in ("train", "val", "test") if (folder / name).is_dir()]
    classes = [path for part in parts for path in class_folders(part)]
    if len({path.name for path in classes}) < len(classes):  # the same classes in each part
        return read_folder(folder, size, EVERY)
    if classes:
        log.warning("%s: its parts have different classes; all are taken together", folder)
    classes = classes or class_folders(folder)
    return split_classes(sorted(classes, key=lambda path: path.name), size, EVERY)


def _array_part(folder: Path, part: str, size: int) -> RawPart:
    images, labels = (_load(folder / f"{part}_{kind}.npy") for kind in "xy")
    if images.shape[1:] != (size, size, 3):
        raise UserError(
            f"{folder / part}_x.npy: expected images of ({size}, {size}, 3), "
            f"but got {images.shape[1:]}"
        )
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise UserError(f"{folder / part}_y.npy: expected a class number for each image")
    return RawPart(
        [int(label) for label in labels],
        lambda: (_to_uint8(block).transpose(0, 3, 1, 2) for block in blocks_of(images)),
    )


def _load(path: Path) -> Pixels:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"{path.parent} has no {path.name}: it is not complete") from None
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} is not a whole array file: {error}") from None


def _to_uint8(block: Pixels) -> Pixels:
    """Pixels in 0…255; floating-point ones are given in 0…1."""
    if block.dtype == np.uint8:
        return block
    if block.dtype.kind != "f" or not (block.min() >= 0 and block.max() <= 1):
        raise UserError("mini-ImageNet arrays must be uint8, or floating-point numbers in 0…1")
    return np.rint(block * 255).astype(np.uint8)
