"""BFP: backward feature projection (Gu et al., 2023)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..errors import check_numbers
from ..functional.losses import feature_distance
from ..types import Batch, Terms
from .base import Regularizer
from .feature_recorder import FEATURES, FeatureRecorder

if TYPE_CHECKING:
    from ..backbones.network import Network
    from ..training.step import Step


class BFP(Regularizer):
    r"""Keeps the features of the network before the task a linear image of the present ones.

        L = α · 1/n Σ_i ‖A φ(x_i) + b − φ*(x_i)‖ / √d

    φ(x) in R^d: the features, the last layer's input. φ*: those of the network at the last task's
    end, in eval mode. x_1, …, x_n: all rows of the method's own passes, of stream and memory. A, b:
    learned beside the network, and drawn anew for every task.

    Args:
        weight: α.
        projector_lr: learning rate of A and b, as a factor of the network's.
    """

    task_by_task = True
    on_features = True
    paper = "Gu et al."
    year = 2023
    previous: Network

    def __init__(self, weight: float = 1.0, projector_lr: float = 1.0) -> None:
        super().__init__()
        check_numbers(weight=weight, at_least=0)
        check_numbers(projector_lr=projector_lr, at_least=0, at_most=1e38)  # float32
        self.weight, self.projector_lr = weight, projector_lr
        self._recorder = FeatureRecorder()
        self._heard: list[tuple[Batch, Tensor]] = []  # passes of this step, with their features

    def attach(self, network: Network, example: Tensor | None = None) -> None:  # type: ignore[override]
        """Copy the network, and make A and b of the features' size."""
        if self.weight == 0:
            return
        self.previous = network.frozen_copy()
        self._recorder.attach(network, [FEATURES])
        assert example is not None
        width = self.previous.features(example).shape[1]
        self.projector = nn.utils.skip_init(nn.Linear, width, width, device=example.device)
        for parameter in self.projector.parameters():  # drawn when a task begins
            nn.init.zeros_(parameter)

    def param_groups(self) -> list[dict[str, Any]]:
        if self.weight == 0:
            return []
        own = {"weight_decay": 0.0, "lr_factor": self.projector_lr}
        return [{"params": list(self.projector.parameters()), **own}]

    @torch.no_grad()
    def start(self, step: Step) -> None:
        """Draw A and b as torch draws a linear layer: uniform in ±1/√d."""
        if self.weight > 0:
            bound = 1 / math.sqrt(self.projector.in_features)
            for parameter in self.projector.parameters():
                drawn = torch.rand(parameter.shape, generator=step.generator("bfp"))
                parameter.copy_(bound * (2 * drawn - 1))

    def hear(self, batch: Batch, step: Step) -> AbstractContextManager[None]:
        if self.weight == 0 or step.task.index == 0:
            return nullcontext()
        return self._hearing(batch)

    @contextmanager
    def _hearing(self, batch: Batch) -> Iterator[None]:
        with self._recorder.recording() as passes:
            yield
        self._heard += [(batch, found[FEATURES].flatten(1)[: len(batch)]) for found in passes]

    def losses(self, step: Step) -> Terms:
        heard, self._heard = self._heard, []
        if not heard:
            return {}
        new = torch.cat([features for _, features in heard]).to(self.projector.weight.dtype)
        old = [self.previous.features(batch.x) for batch, _ in heard if len(batch)] or [new]
        return {"bfp": self.weight * feature_distance(self.projector(new), torch.cat(old))}

    def end_task(self, step: Step) -> None:
        if self.weight > 0:
            self.previous.load_state_dict(step.network.state_dict())

    def train(self, mode: bool = True) -> BFP:
        """Leave the old network in eval mode."""
        super().train(mode)
        if self.weight > 0 and hasattr(self, "previous"):
            self.previous.eval()
        return self

    def extra_repr(self) -> str:
        return f"weight={self.weight}, projector_lr={self.projector_lr}"
