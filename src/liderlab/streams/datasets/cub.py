"""CUB-200-2011, in one of two forms:

- the publisher's: images/CLASS/*.jpg, and index files that say which ones are for testing;
- class folders below train/ and test/, as public copies have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ...errors import UserError, unknown
from ..augmentation import Augment
from ..splitting import SplitStream
from .cached_stream import cached_stream
from .image_folder import read_folder
from .raw_data import LabelledFiles, RawData, from_image_files, read_lines

NORMALIZATIONS = {
    "cub200": ((0.4856, 0.4994, 0.4324), (0.2272, 0.2226, 0.2613)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "lite0": ((127 / 255,) * 3, (128 / 255,) * 3),
}
"""Mean and standard deviation of every channel: the data set's own, or those of weights."""


def split_cub200(
    tasks: int = 10,
    class_order: Sequence[int] | None = None,
    *,
    size: int = 224,
    normalize: Literal["cub200", "imagenet", "lite0"] = "cub200",
    root: str | None = None,
) -> SplitStream:
    """CUB-200 by species. size: images are stretched to size x size. normalize: by the data set's
    own mean and standard deviation, or as the weights were trained: torchvision's, or Lite0's.
    root: the data folder."""
    if normalize not in NORMALIZATIONS:
        raise unknown("normalization", str(normalize), NORMALIZATIONS)
    transform = Augment(*NORMALIZATIONS[normalize], padding=4, flip=True)
    return cached_stream("cub200", read_cub, size, tasks, class_order, root, transform)


def read_cub(folder: Path, size: int) -> RawData:
    if not (folder / "images").is_dir() and (folder / "train").is_dir():
        data = read_folder(folder, size)
        return replace(data, names=[_species(name) for name in data.names])
    paths, classes = _index(folder, "images.txt"), _index(folder, "classes.txt")
    class_of = _index(folder, "image_class_labels.txt")
    is_training = _index(folder, "train_test_split.txt")
    label = {id_: number for number, id_ in enumerate(classes)}
    parts: dict[str, LabelledFiles] = {"1": [], "0": []}
    for id_, path in paths.items():
        class_, part = class_of.get(id_, ""), is_training.get(id_, "")
        if class_ not in label or part not in parts:
            raise UserError(f"{folder}: image {id_} has no class, or is neither train nor test")
        if ".." in Path(path).parts or Path(path).is_absolute():
            raise UserError(f"{folder}/images.txt names a path that leads out of it, {path!r}")
        parts[part].append((folder / "images" / path, label[class_]))
    names = [_species(name) for name in classes.values()]
    return from_image_files(names, parts["1"], parts["0"], size)


def _species(name: str) -> str:
    """
    >>> _species("001.Black_footed_Albatross")
    'Black footed Albatross'
    """
    return name.partition(".")[2].replace("_", " ") or name


def _index(folder: Path, name: str) -> dict[str, str]:
    """A file of lines `id value`."""
    pairs = (line.partition(" ") for line in read_lines(folder / name))
    return {id_: value.strip() for id_, _, value in pairs}
