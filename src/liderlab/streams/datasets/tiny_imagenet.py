"""Tiny ImageNet, in the publisher's layout; val is for testing, as its test set has no labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ...errors import UserError
from ..augmentation import Augment
from ..splitting import SplitStream
from .cached_stream import cached_stream
from .raw_data import LabelledFiles, RawData, from_image_files, image_files, read_lines


def split_tinyimagenet(
    tasks: int = 10,
    class_order: Sequence[int] | None = None,
    *,
    size: Literal[32, 64] = 64,
    root: str | None = None,
) -> SplitStream:
    """Tiny ImageNet by class, in the order of wnids.txt; used at 32x32 for pre-training.

    root: the data folder, if not the usual one.
    """
    transform = Augment((0.4802, 0.4480, 0.3975), (0.2770, 0.2691, 0.2821), padding=4, flip=True)
    return cached_stream("tinyimagenet", read_tiny, size, tasks, class_order, root, transform)


def read_tiny(folder: Path, size: int) -> RawData:
    ids = [line.strip() for line in read_lines(folder / "wnids.txt")]
    label = {id_: number for number, id_ in enumerate(ids)}
    train: LabelledFiles = []
    for id_ in ids:
        images = folder / "train" / id_ / "images"
        if not images.is_dir():
            raise UserError(f"{folder} has no train/{id_}/images: it is not complete")
        train += [(path, label[id_]) for path in image_files(images)]
    test: LabelledFiles = []
    annotations = folder / "val" / "val_annotations.txt"
    for line in read_lines(annotations):
        file, id_, *_ = [*line.split("\t"), "", ""]
        if id_ not in label:
            raise UserError(f"{annotations} names a class that is not in wnids.txt: {id_!r}")
        test.append((folder / "val" / "images" / Path(file).name, label[id_]))
    return from_image_files(_names(folder, ids), train, test, size)


def _names(folder: Path, ids: Sequence[str]) -> list[str]:
    """The first name of each class in words.txt, or its id if that file is missing."""
    if not (folder / "words.txt").exists():
        return list(ids)
    pairs = (line.partition("\t") for line in read_lines(folder / "words.txt"))
    words = {id_: names.partition(",")[0].strip() for id_, _, names in pairs}
    names = [words.get(id_) or id_ for id_ in ids]
    shared = {name for name in names if names.count(name) > 1}
    return [f"{n} ({id_})" if n in shared else n for n, id_ in zip(names, ids, strict=True)]
