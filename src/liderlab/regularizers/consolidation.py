"""Parts that the curvature regularisers share."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from ..errors import RunFailed, check_numbers, unknown
from ..functional.curvature import sample_labels
from ..functional.sampling import draw_without_replacement
from ..types import Recipe
from .stages import unwrap

if TYPE_CHECKING:
    from ..training.step import Step

log = logging.getLogger("liderlab")

Fisher = Literal["empirical", "sampled"]
BATCH = 64


class TaskRows:
    """Rows of the task just trained, not augmented, with the labels that the Fisher needs.

    name: of the generator for all draws. samples: rows at most, drawn without replacement; None
    takes all. fisher: "empirical" gives the true labels, "sampled" draws one per row from the
    network's own prediction over the classes seen so far (the true Fisher).
    """

    def __init__(self, name: str, samples: int | None, fisher: Fisher) -> None:
        check_numbers(samples=samples, at_least=1, whole=True)
        if fisher not in (allowed := ("empirical", "sampled")):
            raise unknown("fisher", str(fisher), allowed)
        self.name, self.samples, self.fisher = name, samples, fisher

    def count(self, step: Step) -> int:
        """How many rows `batches` yields."""
        size = len(step.task.train)
        return size if self.samples is None else min(self.samples, size)

    def batches(self, step: Step) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield x: (n, …) and y: (n,) batch by batch; put the network into eval mode before."""
        data, generator = step.task.train, step.generator(self.name)
        index = torch.arange(len(data))
        if (count := self.count(step)) < len(data):
            index = draw_without_replacement(count, len(data), generator)
        for part in index.split(BATCH):
            batch = step.batch(data.rows(part), None)
            y = batch.y
            if self.fisher == "sampled":
                logits = step.network(batch.x)[:, : step.seen]
                if not logits.isfinite().all():
                    raise RunFailed(
                        f"after task {step.task.index + 1} the network's outputs are not finite, "
                        f"and {self.name} cannot draw labels from them: try a smaller --lr"
                    )
                y = sample_labels(logits, generator)
            yield batch.x, y


def check_penalty(weight: float, gamma: float) -> None:
    """Check the two numbers that every curvature penalty has."""
    check_numbers(weight=weight, at_least=0)
    check_numbers(gamma=gamma, at_least=0, at_most=1)


def warn_if_stiff(name: str, weight: float, curvature: float, recipe: Recipe) -> None:
    """Warn if gradient steps would overshoot the penalty's own minimum ever further.

    SGD with momentum μ is stable on a parabola of curvature below 2(1 + μ)/lr.
    """
    bound = 2 * (1 + recipe.momentum) / recipe.lr
    if weight * curvature > bound:
        log.warning(
            "%s: its penalty is too stiff for the learning rate %g, the run may diverge: a weight "
            "below %.2g would be safe.",
            name,
            recipe.lr,
            bound / curvature,
        )


def trainable(network: nn.Module) -> dict[str, Tensor]:
    """The network's trained parameters, by name."""
    return {n: p for n, p in unwrap(network).named_parameters() if p.requires_grad}


def flat(tensors: Iterable[Tensor]) -> Tensor:
    """All tensors as one long vector."""
    vectors = [tensor.flatten() for tensor in tensors]
    return torch.cat(vectors) if vectors else torch.zeros(0)
