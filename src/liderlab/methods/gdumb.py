"""GDumb: greedy sampler and dumb learner (Prabhu et al., 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch

from ..errors import check_numbers, unknown
from ..functional.losses import cross_entropy
from ..functional.sampling import cutmix
from ..types import Batch, Fit, Recipe, Stream, Task, Terms
from .base import Method

if TYPE_CHECKING:
    from ..memory import Memory
    from ..training.step import Step

COLLECT = "collect"


class GDumb(Method):
    """L = λ · CE(f(x̃), y) + (1 − λ) · CE(f(x̃), y_partner),  x̃: CutMix of memory rows

    The stream only fills the memory, greedily and in equal shares. At its end a network is fitted
    to the memory alone, from the run's initial weights, with a learning-rate schedule of its own. A
    batch is mixed with some probability; otherwise λ = 1 and x̃ = x.

    Args:
        fit_epochs: passes over the memory.
        lr_max, lr_min: the range of the learning rate; see `WarmRestarts`.
        weight_decay: of the fit.
        cutmix_alpha, cutmix_probability: λ ~ Beta(α, α), for that share of the batches.
        fit_after: "stream" fits once, at the end; "task" after every task, each time anew.
    """

    rehearsal = True
    policy = "greedy-balanced"
    task_by_task = False
    fits_memory = True
    paper = (
        "Prabhu et al., GDumb: A Simple Approach that Questions Our Progress in Continual Learning"
    )
    year = 2020

    def __init__(
        self,
        fit_epochs: int = 250,
        lr_max: float = 0.05,
        lr_min: float = 0.0005,
        weight_decay: float = 1e-6,
        cutmix_alpha: float = 1.0,
        cutmix_probability: float = 0.5,
        fit_after: Literal["stream", "task"] = "stream",
    ) -> None:
        super().__init__()
        check_numbers(fit_epochs=fit_epochs, at_least=1, whole=True)
        check_numbers(lr_max=lr_max, cutmix_alpha=cutmix_alpha, above=0, at_most=1e38)  # float32
        check_numbers(lr_min=lr_min, at_least=0, at_most=lr_max)
        check_numbers(cutmix_probability=cutmix_probability, at_least=0, at_most=1)
        check_numbers(weight_decay=weight_decay, at_least=0, at_most=1e38)
        if fit_after not in (allowed := ("stream", "task")):
            raise unknown("fit_after", str(fit_after), allowed)
        self.fit_epochs, self.fit_after = fit_epochs, fit_after
        self.lr_max, self.lr_min, self.weight_decay = lr_max, lr_min, weight_decay
        self.cutmix_alpha, self.cutmix_probability = cutmix_alpha, cutmix_probability

    def plan(
        self, task: Task, stream: Stream, recipe: Recipe, epochs: int, memory: Memory
    ) -> list[Fit]:
        collect = Fit(task.train, 1, recipe, COLLECT, augment=False)
        if self.fit_after == "stream" and task.index < len(stream.tasks) - 1:
            return [collect]
        fit_recipe = replace(
            recipe,
            lr=self.lr_max,
            momentum=0.9,
            weight_decay=self.weight_decay,
            optimizer=torch.optim.SGD,
            schedule=WarmRestarts(self.lr_min / self.lr_max),
        )
        return [collect, Fit(memory, self.fit_epochs, fit_recipe, "fit", restart=True)]

    def losses(self, batch: Batch, step: Step) -> Terms:
        if step.fit.name == COLLECT:
            step.store(batch)
            return {}
        generator = step.generator("cutmix")
        if torch.rand((), generator=generator) >= self.cutmix_probability:
            return {"memory": cross_entropy(step.net(batch), batch.y)}
        whole, part = step.gather(batch, x=batch.x, y=batch.y), step.part(batch)
        mixed, partner, share = cutmix(whole["x"], self.cutmix_alpha, generator)
        logits = step.net(batch.replace(x=mixed[part]))
        partners = whole["y"][partner][part]
        own, other = cross_entropy(logits, batch.y), cross_entropy(logits, partners)
        return {"memory": share * own + (1 - share) * other}


@dataclass(frozen=True)
class WarmRestarts:
    """0.1 for one epoch, then cosines from 1 to `lowest` over 1, 2, 4, … epochs; by whole epochs.

    >>> [round(WarmRestarts(0.0)(epoch), 3) for epoch in range(9)]
    [0.1, 1.0, 1.0, 0.5, 1.0, 0.854, 0.5, 0.146, 1.0]
    """

    lowest: float

    def __call__(self, epoch: float) -> float:
        if epoch < 1:
            return 0.1
        length = 2 ** (int(epoch).bit_length() - 1)  # of the cycle, which also began at `length`
        done = int(epoch) / length - 1
        return self.lowest + (1 - self.lowest) * (1 + math.cos(math.pi * done)) / 2
