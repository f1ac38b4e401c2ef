"""CUB-200-2011, from the publisher's images and index files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import UserError
from ..augmentation import Augment
from ..splitting import SplitStream
from .image_folder import Labelled
from .published import split_published
from .reader import Reading, images_of, read_lines


def split_cub200(
    tasks: int = 10,
    class_order: Sequence[int] | None = None,
    *,
    size: int = 224,
    root: str | None = None,
) -> SplitStream:
    """CUB-200 by species. size: images are stretched to size x size. root: the data folder."""
    transform = Augment((0.4856, 0.4994, 0.4324), (0.2272, 0.2226, 0.2613), padding=4, flip=True)
    return split_published("cub200", read_cub, size, tasks, class_order, root, transform)


def read_cub(folder: Path, size: int) -> Reading:
    paths, classes = _index(folder, "images.txt"), _index(folder, "classes.txt")
    of_image = _index(folder, "image_class_labels.txt")
    for_training = _index(folder, "train_test_split.txt")
    label = {id_: number for number, id_ in enumerate(classes)}
    parts: dict[str, Labelled] = {"1": [], "0": []}
    for id_, path in paths.items():
        class_, part = of_image.get(id_, ""), for_training.get(id_, "")
        if class_ not in label or part not in parts:
            raise UserError(f"{folder}: image {id_} has no class, or is for neither train nor test")
        if ".." in Path(path).parts or Path(path).is_absolute():
            raise UserError(f"{folder}/images.txt names a path that leads out of it, {path!r}")
        parts[part].append((folder / "images" / path, label[class_]))
    names = [name.partition(".")[2].replace("_", " ") or name for name in classes.values()]
    return Reading(names, (3, size, size), images_of(parts["1"], size), images_of(parts["0"], size))


def _index(folder: Path, name: str) -> dict[str, str]:
    """A file of lines `id value`."""
    pairs = (line.partition(" ") for line in read_lines(folder / name))
    return {id_: value.strip() for id_, _, value in pairs}
