"""Finetune: nothing against forgetting, the lower bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..functional.losses import cross_entropy
from ..types import Batch, Terms
from .base import Method

if TYPE_CHECKING:
    from ..training.step import Step


class Finetune(Method):
    """L = CE(f(x), y) on the stream."""

    task_free = True

    def losses(self, batch: Batch, step: Step) -> Terms:
        return {"stream": cross_entropy(step.net(batch), batch.y)}
