"""A-GEM: averaged gradient episodic memory (Chaudhry et al., 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..functional.losses import cross_entropy
from ..functional.sharpness import projected
from ..types import Batch, Gradient, Terms
from .base import Method

if TYPE_CHECKING:
    from ..training.step import Step


class AGEM(Method):
    """L = CE(f(x), y), stepped down so that the mean loss of a replay batch does not rise:

        g̃ = g                            if gᵀ g_ref ≥ 0
        g̃ = g − (gᵀ g_ref / g_refᵀ g_ref) g_ref   otherwise                    (Eq. 11)

    g: the gradient of all terms, those of regularisers included. g_ref: the gradient of
    CE(f(x'), y') on a replay batch, which is a constraint and no term of the loss.
    """

    rehearsal = True
    paper = "Chaudhry et al., Efficient Lifelong Learning with A-GEM"
    year = 2019

    def __init__(self) -> None:
        super().__init__()
        self._reference: Gradient | None = None  # of the step under way

    def losses(self, batch: Batch, step: Step) -> Terms:
        terms = {"stream": step.settle(cross_entropy(step.net(batch), batch.y))}
        self._reference = None
        if step.task.index > 0 and (replay := step.draw()):
            self._reference = step.gradient(cross_entropy(step.net(replay), replay.y))
        step.store(batch)
        return terms

    def transform(self, gradient: Gradient, step: Step) -> Gradient:
        reference, self._reference = self._reference, None
        return gradient if reference is None else projected(gradient, reference)
