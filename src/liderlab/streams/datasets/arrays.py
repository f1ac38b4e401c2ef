"""Your own arrays: training and test images become a benchmark that runs can name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import UserError
from ...registry import Entry
from ...types import Transform
from .. import BENCHMARKS
from ..splitting import Images, SplitStream, split


def add_benchmark(
    name: str,
    train: Images,
    test: Images,
    tasks: int,
    *,
    names: Sequence[str] | None = None,
    transform: Transform | None = None,
    defaults: Mapping[str, Any] | None = None,
    replace: bool = False,
) -> None:
    """Let runs of this Python process use these images under a name.

    defaults: values of the configuration that a run does not set itself, as in a configuration
    file. replace: replace other arrays of that name; built-in benchmarks cannot be replaced.

    >>> import torch
    >>> images = Images(torch.zeros(4, 1, 8, 8, dtype=torch.uint8), [0, 0, 1, 1])
    >>> add_benchmark("mine", images, images, tasks=2)
    >>> BENCHMARKS.pop("mine").facts["image"]
    '1x8x8'
    """
    if not re.fullmatch(r"[\w.+-]+", name):
        raise UserError(
            f"a benchmark's name is made of letters, digits and . _ + -, but got {name!r}"
        )
    existing = BENCHMARKS.get(name)
    if existing and not existing.facts.get("own"):
        raise UserError(f"{name} is a built-in benchmark: choose another name for your arrays")
    if existing and not replace:
        raise UserError(
            f"there are arrays named {name} already: choose another name, or pass replace=True"
        )

    def make(tasks: int = tasks, class_order: Sequence[int] | None = None) -> SplitStream:
        return split(train, test, tasks, class_order, names=names, transform=transform)

    stream = make()  # report mistakes now, not when a run begins
    facts = {
        "classes": len(stream.names),
        "tasks": tasks,
        "image": "x".join(map(str, stream.image_shape)),
        "own": True,
        "defaults": {"backbone": {"name": "convnet-small"}, **(defaults or {})},
    }
    BENCHMARKS[name] = Entry(make, "given as arrays", facts)
