"""Accuracy of a network on every task."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..distributed.team import Team
from ..functional import metrics
from ..memory import Memory
from ..regularizers.stages import evaluating
from ..types import Source, State, Stream, Task, seen_classes

BATCH = 256
BATCH_ON_HOST = 64  # whose maps stay in the processor's cache: 1.2 times as fast as 256
MOST_CLASSES = 1_000  # of a confusion matrix, which grows with their square
MOST_OF_MEMORY = 5_000  # rows of the memory to evaluate on, at most


class Evaluation:
    """The accuracy matrices of a run, filled row by row after each task.

    class_incremental: argmax over the classes seen so far, so unseen tasks have no entry.
    task_incremental: argmax over the task's own classes; measured one task ahead, for FWT.
    on_memory: class-incremental, on the samples in memory against their stored labels. Far above
    the test accuracy, it shows overfitting to the memory.
    confusion: (true, predicted) after the last task evaluated; empty above `MOST_CLASSES` classes.
    """

    def __init__(self, tasks: int) -> None:
        self.class_incremental = torch.full((tasks, tasks), torch.nan, dtype=torch.float64)
        self.task_incremental = self.class_incremental.clone()
        self.on_memory = self.class_incremental.clone()
        self.untrained = torch.full((tasks,), torch.nan, dtype=torch.float64)
        self.confusion = torch.zeros(0, 0, dtype=torch.int64)

    def before_training(
        self,
        network: nn.Module,
        stream: Stream,
        tasks: Sequence[Task] | None = None,
        team: Team | None = None,
    ) -> None:
        """Measure the untrained network on these tasks, by default all."""
        for task in stream.tasks if tasks is None else tasks:
            scores, y = score(network, stream, task.test, team=team)
            self.untrained[task.index] = accuracy(scores, y, task.classes)

    def after_task(
        self,
        classifier: nn.Module,
        stream: Stream,
        now: Task,
        team: Team | None = None,
        *,
        ahead: bool = True,
    ) -> None:
        """Fill row `now` of both settings, and the confusion matrix. ahead: the next task, too."""
        classes, seen = len(stream.names), seen_classes(stream.tasks[: now.index + 1])
        side = classes if classes <= MOST_CLASSES else 0
        self.confusion = torch.zeros(side, side, dtype=torch.int64)
        for task in stream.tasks[: now.index + 1 + ahead]:
            scores, y = score(classifier, stream, task.test, team=team)
            self.task_incremental[now.index, task.index] = accuracy(scores, y, task.classes)
            if task.index <= now.index:
                self.class_incremental[now.index, task.index] = accuracy(scores, y, seen)
                if side:
                    pairs = y, best(scores, seen)
                    self.confusion.index_put_(pairs, torch.ones_like(y), accumulate=True)

    def remember(
        self,
        classifier: nn.Module,
        stream: Stream,
        memory: Memory,
        now: Task,
        team: Team | None = None,
    ) -> None:
        """Fill row `now` of `on_memory`: NaN for tasks without samples there."""
        index = torch.arange(0, len(memory), -(-len(memory) // MOST_OF_MEMORY) or 1)
        if not len(index):
            return
        scores, y = score(classifier, stream, memory, index, team)
        task_of = memory.read("task", index)
        seen = seen_classes(stream.tasks[: now.index + 1])
        for task in stream.tasks[: now.index + 1]:
            rows = task_of == task.index
            self.on_memory[now.index, task.index] = accuracy(scores[rows], y[rows], seen)

    def summary(self) -> dict[str, dict[str, object]]:
        """All metrics of both settings; None where one is not defined."""
        return {
            "class_incremental": {
                **_metrics(self.class_incremental),
                "fwt": None,  # an unseen task's classes are never predicted
                "confusion_matrix": self.confusion.tolist(),
                "memory_accuracy": _matrix(self.on_memory),
            },
            "task_incremental": {
                **_metrics(self.task_incremental),
                "fwt": _number(metrics.forward_transfer(self.task_incremental, self.untrained)),
                "untrained": [_number(value) for value in self.untrained.tolist()],
            },
        }

    def state_dict(self) -> State:
        return dict(vars(self))

    def load_state_dict(self, state: State) -> None:
        for name, value in state.items():
            own = vars(self)[name]
            if value.dim() != own.dim() or (value.shape != own.shape and name != "confusion"):
                raise ValueError(f"Expected {name} of the shape {own.shape}, got {value.shape}.")
            vars(self)[name] = value.to(own.dtype, copy=True)


def score(
    classifier: nn.Module,
    stream: Stream,
    data: Source,
    index: Tensor | None = None,
    team: Team | None = None,
) -> tuple[Tensor, Tensor]:
    """Scores (n, classes) of these rows, by default all, and their labels (n,), in eval mode. The
    device is waited for once, at the end. team: ranks that score a part each."""
    index = torch.arange(len(data)) if index is None else index
    total = len(index)
    sharing = team if team and team.size > 1 and total >= 2 * team.size else None
    device = next(classifier.parameters(), torch.zeros(())).device
    normalise = stream.transform.sample(1, None)
    size = BATCH_ON_HOST if device.type == "cpu" else BATCH
    outputs, labels = [], []
    with evaluating(classifier), torch.inference_mode():
        for part in (index[sharing.share(total)] if sharing else index).split(size):
            rows = data.rows(part)
            asked = [rows["task"].to(device)] if getattr(classifier, "asks_task", False) else []
            x = normalise(rows["x"].to(device, non_blocking=True))
            outputs.append(classifier(x, *asked))
            labels.append(rows["y"])
    scores, y = torch.cat(outputs), torch.cat(labels)
    if sharing:
        whole = sharing.gather({"scores": scores, "y": y.to(scores.device)}, total)
        scores, y = whole["scores"], whole["y"]
    return scores.cpu(), y.cpu()


def accuracy(scores: Tensor, y: Tensor, classes: Sequence[int]) -> float:
    """Percent of rows whose best score among `classes` is the label's."""
    return 100 * float((best(scores, classes) == y).double().mean())


def best(scores: Tensor, classes: Sequence[int]) -> Tensor:
    """(n,) the class with the best score among `classes`; of equal ones, the first."""
    among = torch.tensor(classes)
    return among[scores[:, among].argmax(1)]


def _metrics(matrix: Tensor) -> dict[str, object]:
    return {
        "faa": _number(metrics.final_average_accuracy(matrix)),
        "ff": _number(metrics.final_forgetting(matrix)),
        "bwt": _number(metrics.backward_transfer(matrix)),
        "aia": _number(metrics.average_incremental_accuracy(matrix)),
        "accuracy_matrix": _matrix(matrix),
    }


def _matrix(matrix: Tensor) -> list[list[float | None]]:
    return [[_number(value) for value in row] for row in matrix.tolist()]


def _number(value: float) -> float | None:
    return None if value != value else value
