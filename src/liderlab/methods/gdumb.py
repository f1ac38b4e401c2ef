"""GDumb: greedy sampler and dumb learner (Prabhu et al., 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch

from ..errors import check_numbers, unknown
from ..functional.losses import cross_entropy
from ..functional.sampling import cutmix
from ..types import Batch, Fit, MultiStep, Recipe, Stream, Task, Terms
from .base import Method

if TYPE_CHECKING:
    from ..memory import Memory
    from ..training.step import Step

COLLECT = "collect"
CHOICES = {
    "fit_after": ("stream", "task"),
    "optimizer_per": ("fit", "epoch"),
    "collect": ("once", "every-epoch"),
}


class GDumb(Method):
    """L = λ · CE(f(x̃), y) + (1 − λ) · CE(f(x̃), y_partner),  x̃: CutMix of memory rows

    The stream only fills the memory, greedily and in equal shares. At its end a network is fitted
    to the memory alone, from the run's initial weights, with a learning-rate schedule of its own. A
    batch is mixed with some probability; otherwise λ = 1 and x̃ = x.

    Args:
        fit_epochs: passes over the memory.
        lr_max, lr_min: the range of the learning rate; see `WarmRestarts`.
        momentum, weight_decay: of the fit.
        cutmix_alpha, cutmix_probability: λ ~ Beta(α, α), for that share of the batches.
        fit_after: "stream" fits once, at the end; "task" after every task, each time anew.
        optimizer_per: "fit", or "epoch", as released with LiDER: an optimizer and a schedule made
            anew for every pass leave no momentum across passes, and the rate at lr_max after a
            first pass at a tenth of it.
        collect: offer a sample to the memory "once", or in "every-epoch" of training.epochs, as
            released with LiDER.
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
        momentum: float = 0.9,
        optimizer_per: Literal["fit", "epoch"] = "fit",
        collect: Literal["once", "every-epoch"] = "once",
    ) -> None:
        super().__init__()
        check_numbers(fit_epochs=fit_epochs, at_least=1, whole=True)
        check_numbers(lr_max=lr_max, cutmix_alpha=cutmix_alpha, above=0, at_most=1e38)  # float32
        check_numbers(lr_min=lr_min, at_least=0, at_most=lr_max)
        check_numbers(cutmix_probability=cutmix_probability, at_least=0, at_most=1)
        check_numbers(weight_decay=weight_decay, at_least=0, at_most=1e38)
        check_numbers(momentum=momentum, at_least=0, below=1)
        given = {"fit_after": fit_after, "optimizer_per": optimizer_per, "collect": collect}
        for name, allowed in CHOICES.items():
            if given[name] not in allowed:
                raise unknown(name, str(given[name]), allowed)
        self.fit_epochs, self.fit_after = fit_epochs, fit_after
        self.momentum, self.optimizer_per, self.collect = momentum, optimizer_per, collect
        self.lr_max, self.lr_min, self.weight_decay = lr_max, lr_min, weight_decay
        self.cutmix_alpha, self.cutmix_probability = cutmix_alpha, cutmix_probability

    def plan(
        self, task: Task, stream: Stream, recipe: Recipe, epochs: int, memory: Memory
    ) -> list[Fit]:
        passes = 1 if self.collect == "once" else epochs
        collect = Fit(task.train, passes, recipe, COLLECT, augment=False)
        if self.fit_after == "stream" and task.index < len(stream.tasks) - 1:
            return [collect]
        fit_recipe = replace(
            recipe,
            lr=self.lr_max,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            optimizer=torch.optim.SGD,
            schedule=WarmRestarts(self.lr_min / self.lr_max),
        )
        whole = Fit(memory, self.fit_epochs, fit_recipe, "fit", restart=True)
        return [collect, *(_each_epoch(whole) if self.optimizer_per == "epoch" else [whole])]

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


def _each_epoch(fit: Fit) -> list[Fit]:
    """A fit for every pass, so that each has a new optimizer; the first at a tenth of the rate."""
    full = replace(fit, epochs=1, recipe=replace(fit.recipe, schedule=MultiStep()), restart=False)
    tenth = replace(full.recipe, lr=0.1 * full.recipe.lr)
    return [replace(full, recipe=tenth, restart=True), *[full] * (fit.epochs - 1)]


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
