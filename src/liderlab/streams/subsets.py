"""Parts of a stream: fewer images of every class, or a validation split."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..errors import UserError
from ..functional.sampling import rank_in_class
from ..types import Source
from .splitting import SplitStream, TaskData


def limit_per_class(
    stream: SplitStream, train_per_class: int | None, test_per_class: int | None
) -> SplitStream:
    """Keep at most this many training and test images of each class; None keeps all."""
    if train_per_class is None and test_per_class is None:
        return stream
    tasks = [
        replace(
            task,
            train=_first_of_each_class(task.train, train_per_class),
            test=_first_of_each_class(task.test, test_per_class),
        )
        for task in stream.tasks
    ]
    return replace(stream, tasks=tasks)


def _first_of_each_class(data: Source, most: int | None) -> Source:
    if most is None:
        return data
    assert isinstance(data, TaskData)
    rank = rank_in_class(data.y, -torch.arange(len(data)))
    return replace(data, index=data.index[rank < most])


def hold_out(stream: SplitStream, share: float | None) -> SplitStream:
    """Replace the test images by `share` of every class's training images; None changes nothing.

    The true test images become unreachable, so that no choice can depend on them. The held-out
    images are spread evenly over each class: they depend on the data and the share alone.
    """
    if share is None:
        return stream
    tasks = []
    for task in stream.tasks:
        assert isinstance(task.train, TaskData)
        data = task.train
        held = spread_over_classes(data.y, share)
        train, test = (replace(data, index=data.index[rows]) for rows in (~held, held))
        tasks.append(replace(task, train=train, test=test))
    return replace(stream, tasks=tasks)


def hold_back(stream: SplitStream, share: float) -> SplitStream:
    """Move `share` of every class's training images to the validation images of its task."""
    tasks = []
    for task, held in zip(stream.tasks, hold_out(stream, share).tasks, strict=True):
        tasks.append(replace(task, train=held.train, validation=held.test))
    return replace(stream, tasks=tasks)


def spread_over_classes(y: Tensor, share: float) -> Tensor:
    """Mask of max(1, round(share · n)) evenly spaced rows of each class with n rows.

    Row r of a class is held out if ⌊(r + 1) m / n⌋ > ⌊r m / n⌋, where m is the number of such rows.

    >>> spread_over_classes(torch.tensor([0, 0, 0, 0, 7, 7]), 0.5).tolist()
    [False, True, False, True, False, True]
    """
    n = torch.bincount(y)[y]
    m = (share * n).round().long().clamp(min=1)
    if bool((m >= n).any()):
        raise UserError(
            f"a validation share of {share} leaves no training image in a class of {int(n.min())}: "
            "choose a smaller share, or more images"
        )
    rank = rank_in_class(y, -torch.arange(len(y)))
    return (rank + 1) * m // n > rank * m // n
