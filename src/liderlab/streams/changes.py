"""A stream made harder: a long tail of rare classes, tasks that flow into each other, wrong labels.

All of them change training images only, and depend on the data and their seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..errors import UserError
from ..functional.sampling import wrong_labels
from ..types import Source, Task
from .splitting import Images, SplitStream, TaskData


def long_tail(stream: SplitStream, factor: float, numbers: Sequence[int], seed: int) -> SplitStream:
    """Keep max(1, round(n · factor^(i / (C − 1)))) of the n training images of class i, at random.

    numbers: i of every class, by its position in the class order. With the data set's own numbers,
    another class order spreads the rare classes over the tasks.
    """
    generator = torch.Generator().manual_seed(seed)

    def kept(task: Task) -> Task:
        rows = []
        for c, own in _shuffled_classes(task.train, generator):
            share = factor ** (numbers[c] / max(1, len(numbers) - 1))
            rows.append(own[: max(1, round(share * len(own)))])
        return replace(task, train=_with_rows(task.train, rows))

    return _changed(stream, kept)


def blurred(stream: SplitStream, share: float, seed: int) -> SplitStream:
    """Move round(share · n) of the n training images of each class to the other tasks, in equal
    parts, at random (Blurry-M of Bang et al., 2021). Test images stay."""
    if len(stream.tasks) == 1:
        raise UserError("benchmark.blurry mixes tasks and there is only one: --tasks 2 or more")
    if stream.setting == "domain-incremental":
        raise UserError(
            "benchmark.blurry moves classes to other tasks, and here every task has all classes: "
            "leave it out"
        )
    generator = torch.Generator().manual_seed(seed)
    rows: list[list[Tensor]] = [[] for _ in stream.tasks]
    for task in stream.tasks:
        others = [index for index in range(len(rows)) if index != task.index]
        for _, own in _shuffled_classes(task.train, generator):
            leaving, stay = own.tensor_split([round(share * len(own))])
            rows[task.index].append(stay)
            for place, other in enumerate(
                torch.randperm(len(others), generator=generator).tolist()
            ):
                rows[others[other]].append(leaving[place :: len(others)])

    def mixed(task: Task) -> Task:
        train = _with_rows(task.train, rows[task.index])
        also = set(train.y.tolist()) - set(task.classes)
        return replace(task, train=train, also=sorted(also))

    return _changed(stream, mixed)


def relabelled(stream: SplitStream, probability: float, seed: int) -> SplitStream:
    """Replace training labels with this probability by another class of the label's task."""
    generator = torch.Generator().manual_seed(seed)
    groups = [task.classes for task in stream.tasks]
    group_of = {c: index for index in reversed(range(len(groups))) for c in groups[index]}

    def wrong(task: Task) -> Task:
        data = _data(task.train)
        group = torch.tensor([group_of[c] for c in data.y.tolist()])
        y = data.images.y.clone()
        y[data.index], _ = wrong_labels(data.y, group, groups, probability, generator)
        return replace(task, train=replace(data, images=Images(data.images.x, y)))

    return _changed(stream, wrong)


def _changed(stream: SplitStream, change: Callable[[Task], Task]) -> SplitStream:
    return replace(stream, tasks=[change(task) for task in stream.tasks], changed=True)


def _shuffled_classes(data: Source, generator: torch.Generator) -> Iterator[tuple[int, Tensor]]:
    """Every class with its positions in the shared arrays, in random order."""
    data = _data(data)
    for c in data.y.unique().tolist():
        own = data.index[data.y == c]
        yield c, own[torch.randperm(len(own), generator=generator)]


def _with_rows(data: Source, rows: Sequence[Tensor]) -> TaskData:
    return replace(_data(data), index=torch.cat(list(rows)).sort().values)


def _data(data: Source) -> TaskData:
    assert isinstance(data, TaskData)
    return data
