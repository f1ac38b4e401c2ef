"""Bring your own: a folder of class folders becomes a benchmark.

PATH/train/<class>/*.jpg and PATH/test/<class>/*.jpg (or val/), or
PATH/<class>/*.jpg: of each class, by name, every fifth image is for testing (the last one of a
class with fewer than five).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import UserError, check_numbers
from ..augmentation import Augment
from ..splitting import SplitStream, split
from ..storage.cache import cached
from ..storage.location import absolute, readable
from .reader import Reading, image_files, images_of

Labelled = list[tuple[Path, int]]


def folder(
    tasks: int | None = None,
    class_order: Sequence[int] | None = None,
    *,
    path: str = "",
    size: int = 64,
) -> SplitStream:
    """Class folders as a stream; classes in the order of their names.

    size: images are stretched to size x size. Normalised by their own mean and standard deviation;
    augmented by crops (padding size/8) and flips. The decoded images are kept in the data folder's
    cache, never in `path`.
    """
    check_numbers(size=size, at_least=4, at_most=10**4, whole=True)
    if not path:
        raise UserError("say which folder: --benchmark folder:PATH")
    source = absolute(path)
    if not source.is_dir():
        raise UserError(f"{source} is not a folder")
    name = "".join(letter if letter.isalnum() else "_" for letter in source.name)
    ready = cached(f"folder-{name}", source, size, read_folder)
    if tasks is None:
        raise UserError(f"say into how many tasks to split {len(ready.names)} classes: --tasks N")
    transform = Augment(ready.mean, ready.std, padding=size // 8, flip=True)
    return split(
        ready.train, ready.test, tasks, class_order, names=ready.names, transform=transform
    )


def read_folder(source: Path, size: int, every: int = 5) -> Reading:
    """A train/ and test/ (or val/) pair if there is one; else every n-th image is for testing."""
    pair = _pair(source)
    if pair is None:
        names = class_folders(source)
        train, test = split_files(files_by_class(source, names), every)
    else:
        names = class_folders(pair[0])
        if (others := class_folders(pair[1])) != names:
            odd = sorted(set(names) ^ set(others))[0]
            raise UserError(
                f"{source}: class {odd!r} is not in both {pair[0].name} and {pair[1].name}"
            )
        train, test = (labelled(files_by_class(part, names)) for part in pair)
    return Reading(names, (3, size, size), images_of(train, size), images_of(test, size))


def _pair(source: Path) -> tuple[Path, Path] | None:
    train = source / "train"
    tests = [source / name for name in ("test", "val") if (source / name).is_dir()]
    return (train, tests[0]) if train.is_dir() and tests else None


def class_folders(folder: Path) -> list[str]:
    """The names of the class folders, hidden ones passed over."""
    found = (p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    names = sorted(readable(path).name for path in found)
    if not names:
        raise UserError(f"{folder} has no class folders: expected {folder}/CLASS/IMAGE.jpg")
    return names


def files_by_class(folder: Path, names: Sequence[str]) -> list[list[Path]]:
    by_class = [image_files(folder / name) for name in names]
    for name, files in zip(names, by_class, strict=True):
        if not files:
            raise UserError(f"{folder / name} has no images: every class needs some")
    return by_class


def labelled(by_class: Sequence[Sequence[Path]]) -> Labelled:
    return [(path, label) for label, files in enumerate(by_class) for path in files]


def split_files(by_class: Sequence[Sequence[Path]], every: int) -> tuple[Labelled, Labelled]:
    """Of each class every n-th file for testing, of a class with fewer than n the last one."""
    train: list[Sequence[Path]] = []
    test: list[Sequence[Path]] = []
    for files in by_class:
        if len(files) < 2:
            raise UserError(
                f"{files[0].parent} has a single image: one is needed for training, one for testing"
            )
        step = min(every, len(files))
        test.append(files[step - 1 :: step])
        train.append([path for place, path in enumerate(files) if (place + 1) % step])
    return labelled(train), labelled(test)
