"""Fewer images of every class."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..functional.sampling import rank_in_class
from ..streams.splitting import SplitStream, TaskData
from ..types import Source


def thin(
    stream: SplitStream, train_per_class: int | None, test_per_class: int | None
) -> SplitStream:
    """The stream with at most so many training and test images per class; None takes all."""
    if train_per_class is None and test_per_class is None:
        return stream
    tasks = [
        replace(
            task,
            train=_first_of_each(task.train, train_per_class),
            test=_first_of_each(task.test, test_per_class),
        )
        for task in stream.tasks
    ]
    return replace(stream, tasks=tasks)


def _first_of_each(data: Source, most: int | None) -> Source:
    if most is None:
        return data
    assert isinstance(data, TaskData)
    place = torch.arange(len(data))
    rank = rank_in_class(data.images.y[data.index], -place)
    return replace(data, index=data.index[rank < most])
