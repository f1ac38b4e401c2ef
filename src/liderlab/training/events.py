"""Positions in a run, and the events that its loop yields."""

from __future__ import annotations

from dataclasses import dataclass

from ..types import Fit, Task, Terms
from .anytime import Point
from .evaluation import Evaluation


@dataclass(frozen=True)
class Cursor:
    """Position in the run: the next batch to train on."""

    task: int = 0
    fit: int = 0
    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class StepDone:
    """A batch has been trained on. terms: values on the device; reading them waits for it."""

    task: Task
    fit: Fit
    fits: int
    epoch: int
    batch: int
    batches: int
    terms: Terms


@dataclass(frozen=True)
class Measured:
    """Accuracies have been measured in the middle of a task."""

    task: Task
    point: Point


@dataclass(frozen=True)
class TaskDone:
    """A task has been trained and evaluated. point: anytime accuracies at its end, if wanted."""

    task: Task
    evaluation: Evaluation
    point: Point | None = None


Event = StepDone | Measured | TaskDone
