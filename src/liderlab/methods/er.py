"""ER: experience replay (Chaudhry et al., 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..functional.losses import cross_entropy
from ..types import Batch, Terms
from .base import Method

if TYPE_CHECKING:
    from ..training.step import Step


class ER(Method):
    """L = CE(f(x), y) + CE(f(x'), y'), (x', y') drawn from a reservoir memory."""

    rehearsal = True
    task_free = True
    paper = "Chaudhry et al., On Tiny Episodic Memories"
    year = 2019

    def losses(self, batch: Batch, step: Step) -> Terms:
        terms = {"stream": step.settle(cross_entropy(step.net(batch), batch.y))}
        if replay := step.draw():
            terms["replay"] = cross_entropy(step.net(replay), replay.y)
        step.store(batch)
        return terms
