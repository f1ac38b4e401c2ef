"""The benchmark `first-tasks`: the first two of CIFAR-100's ten tasks, for `peers.py`."""

from collections.abc import Sequence
from dataclasses import replace

from liderlab.registry import Entry
from liderlab.streams import BENCHMARKS
from liderlab.streams.datasets.cifar import split_cifar100
from liderlab.streams.splitting import SplitStream

TASKS = 2


def first_tasks(tasks: int = 10, class_order: Sequence[int] | None = None) -> SplitStream:
    stream = split_cifar100(tasks, class_order)
    return replace(stream, tasks=stream.tasks[:TASKS])


BENCHMARKS["first-tasks"] = Entry(first_tasks, "two tasks of CIFAR-100", {"tasks": 10})
