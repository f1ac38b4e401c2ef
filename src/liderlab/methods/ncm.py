"""NCM: the nearest class mean of a frozen backbone's features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ..types import Batch, Fit, Recipe, Stream, Task, Terms
from .base import Method
from .nearest_mean import NearestMean, unit

if TYPE_CHECKING:
    from ..backbones.network import Network
    from ..memory import Memory
    from ..training.step import Step


class NCM(Method):
    """argmin_c ‖φ(x) − μ_c‖,  μ_c: the mean of φ over all training images of class c so far

    φ: the backbone's features, which stay as they start. Nothing is trained: every task passes
    once, not augmented, and only the sums of the features and the numbers of images are kept.

    Args:
        normalize: scale features to length 1, and the means again, so that the nearest mean has the
            largest cosine; False takes them as they are.
    """

    trains = "nothing"
    task_free = True
    heads = ("all",)
    paper = "Mensink et al., Distance-Based Image Classification: Generalizing to New Classes"
    year = 2013
    sums: Tensor
    counts: Tensor

    def __init__(self, normalize: bool = True) -> None:
        super().__init__()
        self.normalize = normalize

    def attach(self, network: Network, example: Tensor) -> None:
        network.requires_grad_(False)
        network.keep_in_eval([network.backbone])
        classes, width = network(example).shape[1], network.features(example).shape[1]
        self.register_buffer("sums", example.new_zeros(classes, width))
        self.register_buffer("counts", example.new_zeros(classes, dtype=torch.int64))

    def plan(
        self, task: Task, stream: Stream, recipe: Recipe, epochs: int, memory: Memory
    ) -> list[Fit]:
        every_row = replace(recipe, drop_last=False)
        return [Fit(task.train, 1, every_row, "means", augment=False)]

    @torch.no_grad()
    def losses(self, batch: Batch, step: Step) -> Terms:
        step.count(len(batch))
        features = self.sums[:0]
        if len(batch):  # a rank may have no rows
            features = unit(step.network.features(batch.x), self.normalize)
        step.after(self._add, of=batch, features=features, y=batch.y)
        return {}

    def _add(self, features: Tensor, y: Tensor) -> None:
        self.sums.index_add_(0, y, features)
        self.counts.index_add_(0, y, torch.ones_like(y))

    def classifier(self, network: Network) -> nn.Module:
        means = unit(self.sums / self.counts.clamp_min(1)[:, None], self.normalize)
        return NearestMean(network, means, self.counts > 0, self.normalize)
