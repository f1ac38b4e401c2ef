"""Your own images: a folder of class folders becomes a benchmark.

PATH/train/CLASS/*.jpg and PATH/test/CLASS/*.jpg (or val/), or PATH/CLASS/*.jpg: then every fifth
image of a class, by name, is for testing (the last one of a class with fewer than five).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from ...errors import UserError, check_numbers
from ..augmentation import Augment
from ..splitting import SplitStream, split
from ..storage.cache import CachedData, cached
from ..storage.location import absolute, check_utf8
from .raw_data import LabelledFiles, RawData, from_image_files, image_files

log = logging.getLogger("liderlab")


def folder(
    tasks: int | None = None,
    class_order: Sequence[int] | None = None,
    *,
    path: str = "",
    size: int = 64,
) -> SplitStream:
    """Class folders as a stream; classes in the order of their names.

    size: images are stretched to size x size. They are normalised by their own mean and standard
    deviation, and augmented by crops (padding size/8) and flips. The decoded images are kept in the
    data folder's cache, never in `path`.
    """
    data = cached_folder(own_folder(path, "folder", size), size)
    if tasks is None:
        raise UserError(f"choose into how many tasks to split {len(data.names)} classes: --tasks N")
    transform = Augment(data.mean, data.std, padding=size // 8, flip=True)
    return split(data.train, data.test, tasks, class_order, names=data.names, transform=transform)


def own_folder(path: str, benchmark: str, size: int) -> Path:
    """The folder that the user named, for images of this size."""
    check_numbers(size=size, at_least=4, at_most=10**4, whole=True)
    if not path:
        raise UserError(f"name the folder: --benchmark {benchmark}:PATH")
    source = absolute(path)
    if not source.is_dir():
        raise UserError(f"{source} is not a folder")
    return source


def cached_folder(source: Path, size: int) -> CachedData:
    """The decoded images of a folder of class folders."""
    name = "".join(letter if letter.isalnum() else "_" for letter in source.name)
    return cached(f"folder-{name}", source, size, read_folder)


def read_folder(source: Path, size: int, every: int = 5) -> RawData:
    """Read train/ and test/ (or val/) if both exist; else every n-th image is for testing."""
    parts = [source / name for name in ("train", "test", "val") if (source / name).is_dir()]
    if len(parts) < 2 or parts[0].name != "train":
        return split_classes(class_folders(source), size, every)
    train, test = (class_folders(part) for part in parts[:2])
    names = [path.name for path in train]
    if odd := sorted(set(names) ^ {path.name for path in test}):
        raise UserError(
            f"{source}: class {odd[0]!r} is not in both {parts[0].name} and {parts[1].name}"
        )
    train_files, test_files = (
        [(path, label) for label, folder in enumerate(folders) for path in class_images(folder)]
        for folders in (train, test)
    )
    if parts[1].name == "val":
        log.warning("%s: val/ is used for testing", source)
    elif len(parts) > 2:
        log.warning("%s: train/ and test/ are used, val/ is left out", source)
    return from_image_files(names, train_files, test_files, size)


def split_classes(folders: Sequence[Path], size: int, every: int) -> RawData:
    """Every n-th image of each class is for testing; of a class with fewer, the last one."""
    train: LabelledFiles = []
    test: LabelledFiles = []
    for label, folder in enumerate(folders):
        files = class_images(folder)
        if len(files) < 2:
            raise UserError(
                f"{folder} has a single image: one is needed for training, one for testing"
            )
        step = min(every, len(files))
        for number, path in enumerate(files, 1):
            (train if number % step else test).append((path, label))
    return from_image_files([folder.name for folder in folders], train, test, size)


def class_folders(folder: Path) -> list[Path]:
    """The class folders, sorted by name; hidden ones are skipped."""
    found = [p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")]
    if not found:
        raise UserError(f"{folder} has no class folders: expected {folder}/CLASS/IMAGE.jpg")
    return sorted(map(check_utf8, found), key=lambda path: path.name)


def class_images(folder: Path) -> list[Path]:
    files = image_files(folder)
    if not files:
        raise UserError(f"{folder} has no images: every class needs some")
    return files
