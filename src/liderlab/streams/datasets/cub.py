"""CUB-200-2011, from the publisher's images and index files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import UserError
from ..augmentation import Augment
from ..splitting import SplitStream
from .cached_stream import cached_stream
from .raw_data import LabelledFiles, RawData, from_image_files, read_lines


def split_cub200(
    tasks: int = 10,
    class_order: Sequence[int] | None = None,
    *,
    size: int = 224,
    root: str | None = None,
) -> SplitStream:
    """CUB-200 by species. size: images are stretched to size x size. root: the data folder."""
    transform = Augment((0.4856, 0.4994, 0.4324), (0.2272, 0.2226, 0.2613), padding=4, flip=True)
    return cached_stream("cub200", read_cub, size, tasks, class_order, root, transform)


def read_cub(folder: Path, size: int) -> RawData:
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
    names = [name.partition(".")[2].replace("_", " ") or name for name in classes.values()]
    return from_image_files(names, parts["1"], parts["0"], size)


def _index(folder: Path, name: str) -> dict[str, str]:
    """A file of lines `id value`."""
    pairs = (line.partition(" ") for line in read_lines(folder / name))
    return {id_: value.strip() for id_, _, value in pairs}
