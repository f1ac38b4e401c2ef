"""Bring your own: two pairs of arrays become a benchmark that runs can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..registry import Entry
from ..types import Transform
from . import BENCHMARKS
from .splitting import Images, SplitStream, split


def add_benchmark(
    name: str,
    train: Images,
    test: Images,
    tasks: int,
    *,
    names: Sequence[str] | None = None,
    transform: Transform | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Let runs of this Python process use these images under a name.

    defaults: a run's values where nothing else is said, as in a configuration file.

    >>> import torch
    >>> images = Images(torch.zeros(4, 1, 8, 8, dtype=torch.uint8), [0, 0, 1, 1])
    >>> add_benchmark("mine", images, images, tasks=2)
    >>> BENCHMARKS.pop("mine").facts["image"]
    '1x8x8'
    """

    def make(tasks: int = tasks, class_order: Sequence[int] | None = None) -> SplitStream:
        return split(train, test, tasks, class_order, names=names, transform=transform)

    stream = make()  # a mistake is told now, not when a run begins
    facts = {
        "classes": len(stream.names),
        "tasks": tasks,
        "image": "x".join(map(str, stream.image_shape)),
        "defaults": {"backbone": {"name": "convnet-small"}, **(defaults or {})},
    }
    BENCHMARKS[name] = Entry(make, "given as arrays", facts)
