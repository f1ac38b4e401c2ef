"""The linear probe: a linear classifier on a frozen backbone's features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from ..backbones.freezing import ALL_BUT_HEAD, freeze
from ..functional.losses import cross_entropy
from ..types import Batch, Terms
from .base import Method

if TYPE_CHECKING:
    from ..backbones.network import Network
    from ..training.step import Step


class LinearProbe(Method):
    """L = CE(W φ(x) + b, y) + CE(W φ(x') + b, y'), (x', y') drawn from a reservoir memory

    φ: the backbone's features, which stay as they start, without dropout. Only the last linear
    layer, W and b, is trained: on the current task and on replayed samples.
    """

    trains = "head"
    rehearsal = True
    task_free = True

    def attach(self, network: Network, example: Tensor) -> None:
        freeze(network, ALL_BUT_HEAD)
        network.keep_in_eval([network.backbone])

    def losses(self, batch: Batch, step: Step) -> Terms:
        rows = {"stream": batch, "replay": step.draw()}
        step.store(batch)
        return {name: cross_entropy(step.net(b), b.y) for name, b in rows.items() if b}
