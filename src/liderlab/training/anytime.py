"""Accuracy during training, on a fixed part of every task's test images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..distributed.team import Team
from ..functional import metrics
from ..types import State, Stream, Task, seen_classes
from .evaluation import accuracy, score
from .randomness import derive

SETTINGS = ("class_incremental", "task_incremental")
Point = dict[str, Any]
"""One moment: `step`, the `task` in training, and by setting the accuracy on each task seen."""


class Anytime:
    """The accuracies of a run every so many steps, and at the end of each task.

    images: test images of each task, at most. They are drawn once: the same ones in every run on
    the same data, whatever its seed.
    """

    def __init__(self, stream: Stream, every: int, images: int) -> None:
        self._stream, self._every = stream, every
        self._parts = [_part(task, images) for task in stream.tasks]
        self.points: list[Point] = []

    def due(self, steps: int) -> bool:
        """Whether this is such a moment, and it has not been measured yet."""
        measured = self.points[-1]["step"] if self.points else 0
        return steps % self._every == 0 and steps != measured

    def measure(
        self, classifier: nn.Module, now: Task, steps: int, team: Team | None = None
    ) -> Point:
        """Add a point; training does not notice."""
        point: Point = {"step": steps, "task": now.index, **{setting: [] for setting in SETTINGS}}
        seen = seen_classes(self._stream.tasks[: now.index + 1])
        for task in self._stream.tasks[: now.index + 1]:
            scores, y = score(classifier, self._stream, task.test, self._parts[task.index], team)
            for setting, classes in zip(SETTINGS, (seen, task.classes), strict=True):
                point[setting].append(accuracy(scores, y, classes))
        self.points.append(point)
        return point

    def curve(self, setting: str) -> Tensor:
        """(n, T) accuracy on each task at each moment; NaN for tasks not seen yet."""
        tasks = len(self._stream.tasks)
        rows = [
            point[setting] + [torch.nan] * (tasks - len(point[setting])) for point in self.points
        ]
        return torch.tensor(rows, dtype=torch.float64)

    def summary(self) -> dict[str, dict[str, float | None]]:
        """The metrics of the stability gap, by setting."""
        if not self.points:
            return {}
        task = torch.tensor([point["task"] for point in self.points])
        found = {}
        for setting in SETTINGS:
            curve = self.curve(setting)
            values = {
                "min_acc": metrics.minimum_accuracy(curve, task),
                "wc_acc": metrics.worst_case_accuracy(curve, task),
                "aaa": metrics.average_anytime_accuracy(curve),
            }
            found[setting] = {name: None if v != v else v for name, v in values.items()}
        return found

    def state_dict(self) -> State:
        return {"points": list(self.points)}

    def load_state_dict(self, state: State) -> None:
        self.points = list(state["points"])


def _part(task: Task, images: int) -> Tensor:
    generator = torch.Generator().manual_seed(derive("images for anytime accuracy", task.index))
    return torch.randperm(len(task.test), generator=generator)[:images].sort().values
