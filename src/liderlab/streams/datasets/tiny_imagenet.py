"""Tiny ImageNet, from the publisher's tree; its val images are the test (test has no labels)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ...errors import UserError
from ..augmentation import Augment
from ..splitting import SplitStream
from .image_folder import Labelled
from .published import split_published
from .reader import Reading, distinct, image_files, images_of, read_lines


def split_tinyimagenet(
    tasks: int = 10,
    class_order: Sequence[int] | None = None,
    *,
    size: Literal[32, 64] = 64,
    root: str | None = None,
) -> SplitStream:
    """Tiny ImageNet by class, in the order of wnids.txt; at 32x32 the source of pre-training.

    root: the data folder, if not the usual one.
    """
    transform = Augment((0.4802, 0.4480, 0.3975), (0.2770, 0.2691, 0.2821), padding=4, flip=True)
    return split_published("tinyimagenet", read_tiny, size, tasks, class_order, root, transform)


def read_tiny(folder: Path, size: int) -> Reading:
    ids = [line.strip() for line in read_lines(folder / "wnids.txt")]
    label = {id_: number for number, id_ in enumerate(ids)}
    train: Labelled = []
    for id_ in ids:
        images = folder / "train" / id_ / "images"
        if not images.is_dir():
            raise UserError(f"{folder} has no train/{id_}/images: it is not complete")
        train += [(path, label[id_]) for path in image_files(images)]
    test: Labelled = []
    annotations = folder / "val" / "val_annotations.txt"
    for line in read_lines(annotations):
        file, id_, *_ = [*line.split("\t"), "", ""]
        if id_ not in label:
            raise UserError(f"{annotations} names a class that is not in wnids.txt: {id_!r}")
        test.append((folder / "val" / "images" / Path(file).name, label[id_]))
    names = _names(folder, ids)
    return Reading(names, (3, size, size), images_of(train, size), images_of(test, size))


def _names(folder: Path, ids: Sequence[str]) -> list[str]:
    """The first of the names in words.txt, or the id where that file is missing."""
    if not (folder / "words.txt").exists():
        return list(ids)
    pairs = (line.partition("\t") for line in read_lines(folder / "words.txt"))
    words = {id_: names.partition(",")[0].strip() for id_, _, names in pairs}
    return distinct([words.get(id_) or id_ for id_ in ids], ids)
