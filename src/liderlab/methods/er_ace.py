"""ER-ACE: experience replay with asymmetric cross-entropy (Caccia et al., 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..functional.losses import cross_entropy, masked_cross_entropy
from ..types import Batch, Terms
from .base import Method

if TYPE_CHECKING:
    from ..training.step import Step


class ERACE(Method):
    """L = CE(f(x), y; C_batch ∪ C_unseen) + CE(f(x'), y')

    The stream loss takes the classes of the current batch and those not seen yet, so that it does
    not push down the logits of past classes; the replay loss takes all. In the first task there is
    no mask and no replay. In a task-free stream both begin with the first batch, and a class counts
    as seen once a batch has shown it.
    """

    rehearsal = True
    task_free = True
    paper = "Caccia et al., New Insights on Reducing Abrupt Representation Change"
    year = 2022

    def losses(self, batch: Batch, step: Step) -> Terms:
        logits = step.net(batch)
        terms: Terms = {}
        if step.task.index == 0 and not step.task_free:
            terms["stream"] = cross_entropy(logits, batch.y)
        else:
            unseen = step.unseen
            allowed = unseen | step.present(batch, len(unseen))
            terms["stream"] = step.settle(masked_cross_entropy(logits, batch.y, allowed))
            if replay := step.draw():
                terms["replay"] = cross_entropy(step.net(replay), replay.y)
        step.store(batch)
        return terms
