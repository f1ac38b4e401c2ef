"""Split labelled images by class into a stream of tasks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..errors import UserError
from ..types import Source, Task, Transform
from .augmentation import Augment

ArrayLike = Any
"""A tensor, an array, or a list of numbers."""
CHANNELS = (1, 3)
"""Grey or colour; tells whether an array has its channels first or last."""


@dataclass(frozen=True)
class Images:
    """Labelled images: x (n, C, H, W) uint8, y (n,) class numbers.

    Tensors or arrays; x may also be (n, H, W), (n, H, W, 1) or (n, H, W, 3), and may be
    memory-mapped.

    >>> Images(np.zeros((5, 8, 8, 3), dtype=np.uint8), [0, 1, 0, 1, 2]).x.shape
    torch.Size([5, 3, 8, 8])
    """

    x: Tensor
    y: Tensor

    def __init__(self, x: ArrayLike, y: ArrayLike) -> None:
        pixels, labels = as_tensor(x), as_tensor(y)
        if pixels.dim() == 3:
            pixels = pixels[:, None]
        elif pixels.dim() == 4 and pixels.shape[3] in CHANNELS and pixels.shape[1] not in CHANNELS:
            pixels = pixels.permute(0, 3, 1, 2)
        if pixels.dim() != 4 or pixels.dtype != torch.uint8:
            raise UserError(
                "expected images (n, C, H, W) of whole numbers in 0…255 (uint8), "
                f"but got {tuple(pixels.shape)} of {pixels.dtype}"
            )
        if labels.shape != (len(pixels),) or labels.is_floating_point():
            raise UserError(
                f"expected a class number for each of {len(pixels)} images, "
                f"but got {tuple(labels.shape)} of {labels.dtype}"
            )
        object.__setattr__(self, "x", pixels)
        object.__setattr__(self, "y", labels.long())


@dataclass(frozen=True)
class TaskData:
    """The images of one task, as positions in shared arrays. look: changes their pixels."""

    images: Images
    index: Tensor
    task: int
    look: Callable[[Tensor], Tensor] | None = None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def y(self) -> Tensor:
        return self.images.y[self.index]

    def rows(self, index: Tensor) -> dict[str, Tensor]:
        rows = self.index[index]
        x = self.images.x[rows.to(self.images.x.device, non_blocking=True)]
        x = x if self.look is None else self.look(x)
        return {"x": x, "y": self.images.y[rows], "task": torch.full((len(rows),), self.task)}


@dataclass(frozen=True)
class SplitStream:
    """The result of `split`. setting: whether tasks differ in their classes or in their domain.
    changed: whether training images were drawn at random (changes.py)."""

    tasks: Sequence[Task]
    names: Sequence[str]
    image_shape: tuple[int, int, int]
    transform: Transform
    setting: Literal["class-incremental", "domain-incremental"] = "class-incremental"
    changed: bool = False


def split(
    train: Images,
    test: Images,
    tasks: int | Sequence[int],
    class_order: Sequence[int] | None = None,
    *,
    names: Sequence[str] | None = None,
    transform: Transform | None = None,
) -> SplitStream:
    """Split a labelled data set into tasks of consecutive classes of `class_order`.

    Labels become positions in that order, so that the classes seen so far are always 0 … n−1.

    tasks: the number of classes of each task, or the number of tasks; if the classes do not divide
    evenly into these, the first tasks get one more.

    >>> images = Images(torch.zeros(6, 1, 4, 4, dtype=torch.uint8), torch.arange(6) % 3)
    >>> stream = split(images, images, tasks=3, class_order=[2, 0, 1])
    >>> [(task.classes, len(task.train), stream.names[task.index]) for task in stream.tasks]
    [(range(0, 1), 2, '2'), (range(1, 2), 2, '0'), (range(2, 3), 2, '1')]
    """
    classes = _number_of_classes(train, test, names)
    order = list(range(classes)) if class_order is None else list(class_order)
    if sorted(order) != list(range(classes)):
        raise UserError(
            f"the class order must list each of the {classes} classes 0…{classes - 1} once, "
            f"but got {order}"
        )
    sizes = even_sizes(classes, tasks) if isinstance(tasks, int) else tasks
    position = torch.empty(classes, dtype=torch.int64)
    position[order] = torch.arange(classes)
    train, test = (Images(part.x, position[part.y]) for part in (train, test))
    images, tests = (TaskData(part, torch.arange(len(part.y)), 0) for part in (train, test))
    _, *shape = train.x.shape
    return SplitStream(
        tasks=divide(Task(0, range(classes), images, tests), sizes),
        names=[str(c) if names is None else names[c] for c in order],
        image_shape=(shape[0], shape[1], shape[2]),
        transform=transform or Augment([0.5] * shape[0], [0.5] * shape[0]),
    )


def _number_of_classes(train: Images, test: Images, names: Sequence[str] | None) -> int:
    """Check that training images, test images and names match, and count the classes."""
    if not len(train.y) or not len(test.y) or int(min(train.y.min(), test.y.min())) < 0:
        raise UserError("expected class numbers 0, 1, … and at least one image of each")
    if train.x.shape[1:] != test.x.shape[1:]:
        raise UserError(
            "expected training and test images of one shape (C, H, W), "
            f"but got {tuple(train.x.shape[1:])} and {tuple(test.x.shape[1:])}"
        )
    classes = int(max(train.y.max(), test.y.max())) + 1
    if names is not None and len(names) != classes:
        raise UserError(f"expected a name for each of {classes} classes, but got {len(names)}")
    for images, part in ((train, "training"), (test, "test")):
        counts = torch.bincount(images.y, minlength=classes)
        if not counts.all():
            absent = int(counts.argmin())
            name = f" ({names[absent]})" if names else ""
            raise UserError(f"class {absent}{name} has no {part} images")
    return classes


def even_sizes(classes: int, tasks: int) -> list[int]:
    """Classes of each task, as equal as possible.

    >>> even_sizes(7, 3)
    [3, 2, 2]
    """
    if not 1 <= tasks <= classes:
        raise UserError(f"{classes} classes can be split into 1…{classes} tasks, not {tasks}")
    return [classes // tasks + (index < classes % tasks) for index in range(tasks)]


def divide(whole: Task, sizes: Sequence[int]) -> list[Task]:
    """Tasks of consecutive classes, made from a task with all of them."""
    if min(sizes, default=0) < 1 or sum(sizes) != len(whole.classes):
        raise UserError(
            f"tasks of {', '.join(map(str, sizes)) or 'no'} classes do not add up to the "
            f"{len(whole.classes)} classes of the data: each task needs one or more, each class one"
        )
    bounds = [0, *accumulate(sizes)]
    return [_task(index, range(*pair), whole) for index, pair in enumerate(pairwise(bounds))]


def _task(index: int, classes: range, whole: Task) -> Task:
    def inside(data: Source) -> TaskData:
        assert isinstance(data, TaskData)
        rows = (data.y >= classes.start) & (data.y < classes.stop)
        return replace(data, index=data.index[rows], task=index)

    return Task(index, classes, inside(whole.train), inside(whole.test))


def on_device(stream: SplitStream, device: torch.device) -> SplitStream:
    """Move the stream's images (not their labels) to a device."""
    moved: dict[int, Tensor] = {}  # tasks share their arrays

    def move(data: Any) -> Any:
        x, y = data.images.x, data.images.y
        if id(x) not in moved:
            moved[id(x)] = x.to(device)
        return replace(data, images=Images(moved[id(x)], y))

    tasks = [
        replace(
            task,
            train=move(task.train),
            test=move(task.test),
            validation=task.validation and move(task.validation),
        )
        for task in stream.tasks
    ]
    return replace(stream, tasks=tasks)


def as_tensor(values: ArrayLike) -> Tensor:
    """Convert without a copy if possible; the array may be memory-mapped and read-only."""
    if isinstance(values, Tensor):
        return values
    with warnings.catch_warnings():  # the tensor is never written to
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(values))


def shuffled_order(classes: int, seed: int) -> list[int]:
    """A random class order with its own seed, so that runs with different seeds can share it."""
    generator = torch.Generator().manual_seed(seed)
    return [int(c) for c in torch.randperm(classes, generator=generator)]
