"""mini-ImageNet: 100 classes of 84x84, as class folders or as arrays.

Nobody publishes the one official file, so that what people have is taken as it is:
train_x.npy, train_y.npy, test_x.npy, test_y.npy (as the LiDER authors have it); train/ and test/
with the same classes; or the few-shot splits, whose classes differ (and plain class folders), of
which every sixth image of a class is for testing: 500 and 100 of 600.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import UserError
from ..augmentation import Augment
from ..splitting import SplitStream
from .image_folder import class_folders, files_by_class, read_folder, split_files
from .published import split_published
from .reader import Part, Pixels, Reading, blocks_of, images_of

EVERY = 6


def split_miniimagenet(
    tasks: int = 20, class_order: Sequence[int] | None = None, *, root: str | None = None
) -> SplitStream:
    """mini-ImageNet by class at 84x84. root: the data folder, if not the usual one."""
    transform = Augment((0.4731, 0.4491, 0.4038), (0.2729, 0.2656, 0.2795), padding=4, flip=True)
    return split_published("miniimagenet", read_mini, 84, tasks, class_order, root, transform)


def read_mini(folder: Path, size: int) -> Reading:
    if (folder / "train_x.npy").exists():
        return _arrays(folder, size)
    parts = [folder / name for name in ("train", "val", "test") if (folder / name).is_dir()]
    classes = [class_folders(part) for part in parts]
    if len(set().union(*classes)) < sum(map(len, classes)):  # the same classes in each
        return read_folder(folder, size, EVERY)
    homes = [(part, name) for part, names in zip(parts, classes, strict=True) for name in names]
    homes = homes or [(folder, name) for name in class_folders(folder)]
    homes.sort(key=lambda home: home[1])
    by_class = [files_by_class(part, [name])[0] for part, name in homes]
    train, test = split_files(by_class, EVERY)
    names = [name for _, name in homes]
    return Reading(names, (3, size, size), images_of(train, size), images_of(test, size))


def _arrays(folder: Path, size: int) -> Reading:
    train, test = (_array_part(folder, part, size) for part in ("train", "test"))
    classes = max(*train.labels, *test.labels) + 1
    return Reading([str(c) for c in range(classes)], (3, size, size), train, test)


def _array_part(folder: Path, part: str, size: int) -> Part:
    images, labels = (_load(folder / f"{part}_{kind}.npy") for kind in "xy")
    if images.shape[1:] != (size, size, 3):
        raise UserError(
            f"{folder / part}_x.npy: expected images of ({size}, {size}, 3), "
            f"but got {images.shape[1:]}"
        )
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise UserError(f"{folder / part}_y.npy: expected a class number for each image")
    return Part(
        [int(label) for label in labels],
        lambda: (_bytes(block).transpose(0, 3, 1, 2) for block in blocks_of(images)),
    )


def _load(path: Path) -> Pixels:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"{path.parent} has no {path.name}: it is not complete") from None
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} is not a whole array file: {error}") from None


def _bytes(block: Pixels) -> Pixels:
    """Pixels as bytes; floating-point ones are in 0…1."""
    if block.dtype == np.uint8:
        return block
    if block.dtype.kind != "f" or not (block.min() >= 0 and block.max() <= 1):
        raise UserError("mini-ImageNet arrays must be bytes, or floating-point numbers in 0…1")
    return np.rint(block * 255).astype(np.uint8)
