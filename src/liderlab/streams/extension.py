"""Streams one after the other, and room for classes to come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import UserError
from ..types import Task
from .splitting import Images, SplitStream

TO_COME = "class to come"


def append(first: SplitStream, second: SplitStream) -> SplitStream:
    """The tasks of the first stream, then those of the second, whose classes must be new.

    Images are normalised and augmented as those of the first.
    """
    if first.image_shape != second.image_shape:
        shapes = ["x".join(map(str, s.image_shape)) for s in (first, second)]
        raise UserError(
            f"the images so far are {shapes[0]} and the new ones {shapes[1]}: an extension needs "
            "images of the same shape"
        )
    if known := sorted(set(first.names) & set(second.names)):
        raise UserError(
            f"class {known[0]!r} is known already: an extension needs new classes (for new domains "
            "of the same classes, train on --benchmark domains:PATH)"
        )
    if {first.setting, second.setting} != {"class-incremental"}:
        raise UserError("domains share their classes and cannot be extended by new ones")
    classes, tasks = len(first.names), len(first.tasks)
    later = [_shifted(task, tasks, classes) for task in second.tasks]
    return replace(
        first,
        tasks=[*first.tasks, *later],
        names=[*first.names, *second.names],
        changed=first.changed or second.changed,
    )


def _shifted(task: Task, tasks: int, classes: int) -> Task:
    def moved(data: Any) -> Any:
        images = Images(data.images.x, data.images.y + classes)
        return replace(data, images=images, task=data.task + tasks)

    return Task(
        task.index + tasks,
        [c + classes for c in task.classes],
        moved(task.train),
        moved(task.test),
        [c + classes for c in task.also],
    )


def with_room(stream: SplitStream, outputs: int) -> SplitStream:
    """The stream with names for classes to come, up to so many classes in all."""
    names = [f"{TO_COME} {number}" for number in range(len(stream.names) + 1, outputs + 1)]
    return replace(stream, names=[*stream.names, *names])
