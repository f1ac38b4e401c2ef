"""DER and DER++: dark experience replay (Buzzega et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import check_numbers
from ..functional.losses import cross_entropy, logit_distance
from ..memory import Column
from ..types import Batch, Terms
from .base import Method

if TYPE_CHECKING:
    from ..training.step import Step


class DER(Method):
    """L = CE(f(x), y) + α · MSE(f(x'), z') + β · CE(f(x''), y'')

    x', x'': two independent draws from a reservoir memory. z': the logits of the augmented sample
    in the step that stored it.
    """

    rehearsal = True
    task_free = True
    paper = "Buzzega et al., Dark Experience for General Continual Learning"
    year = 2020
    heads = ("all", "task")  # classes that were closed when a row was stored have no logit

    def __init__(self, alpha: float = 0.1, beta: float = 0.5) -> None:
        super().__init__()
        check_numbers(alpha=alpha, beta=beta, at_least=0)
        self.alpha, self.beta = alpha, beta

    def columns(self, classes: int) -> Mapping[str, Column]:
        return {"logits": Column((classes,))}

    def losses(self, batch: Batch, step: Step) -> Terms:
        logits = step.net(batch)
        terms = {"stream": step.settle(cross_entropy(logits, batch.y))}
        if replay := step.draw():
            distance = logit_distance(step.net(replay), replay.columns["logits"])
            terms["logits"] = self.alpha * distance
        if self.beta > 0 and (replay := step.draw()):
            terms["replay"] = self.beta * cross_entropy(step.net(replay), replay.y)
        step.store(batch, logits=logits.detach())
        return terms


def logits_only(alpha: float = 0.3) -> DER:
    """DER without the ++: β = 0, so that stored logits are replayed but no labels."""
    return DER(alpha, beta=0.0)
