"""Joint: trains on all tasks at once, the upper bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..functional.losses import cross_entropy
from ..types import Batch, Concat, Fit, Recipe, Stream, Task, Terms
from .base import Method

if TYPE_CHECKING:
    from ..memory import Memory
    from ..training.step import Step


class Joint(Method):
    """L = CE(f(x), y) on the union of all tasks, trained when the last one has arrived."""

    task_by_task = False

    def plan(
        self, task: Task, stream: Stream, recipe: Recipe, epochs: int, memory: Memory
    ) -> list[Fit]:
        if task.index < len(stream.tasks) - 1:
            return []
        return [Fit(Concat(tuple(t.train for t in stream.tasks)), epochs, recipe)]

    def losses(self, batch: Batch, step: Step) -> Terms:
        return {"stream": cross_entropy(step.net(batch), batch.y)}
