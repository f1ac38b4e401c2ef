"""Heads: the classes that compete for a row while it is trained on.

    all    every class of the stream, from the first step on
    seen   the classes seen so far: the head grows with each task
    task   the classes of the row's own task: one head per task (task-incremental training)

The last layer has an output for every class. A closed output counts as `SHUT`, so that it takes no
part in a softmax and gets no gradient: the same as a layer that does not have it yet.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ..types import Batch, Stream, Task, seen_classes

HeadKind = Literal["all", "seen", "task"]
SHUT = -1e4
"""exp(−10⁴) is exactly 0, and its square is far from infinity."""


class Heads:
    """Closes the outputs that a row is not scored on. kind: seen or task."""

    def __init__(self, kind: HeadKind, stream: Stream, device: torch.device) -> None:
        self._kind = kind
        open_to = torch.zeros(len(stream.tasks), len(stream.names), dtype=torch.bool)
        for task in stream.tasks:
            known = stream.tasks[: task.index + 1] if kind == "seen" else [task]
            open_to[task.index, seen_classes(known)] = True
        self._open = open_to.to(device)

    def __call__(self, logits: Tensor, batch: Batch, now: Task) -> Tensor:
        """logits: (n, classes) of these rows. now: the task in training."""
        rows = self._open[batch.task] if self._kind == "task" else self._open[now.index]
        return logits.masked_fill(~rows, SHUT)
