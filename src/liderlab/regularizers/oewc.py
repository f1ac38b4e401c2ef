"""oEWC: online elastic weight consolidation (Schwarz et al., 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ..functional.curvature import diagonal_fisher
from ..types import Terms
from .base import Regularizer
from .consolidation import Fisher, TaskRows, check_penalty, flat, trainable, warn_if_stiff
from .stages import evaluating, unwrap

if TYPE_CHECKING:
    from ..training.step import Step


class OEWC(Regularizer):
    r"""Holds each weight near its value after the last task, by how much it mattered.

        L   = λ/2 Σ_j F̃_j (θ_j − θ*_j)²
        F̃_t = γ F̃_{t−1} + F_t,    F_t = 1/n Σ_i (∂log p(y_i|x_i)/∂θ)²  at θ*_t

    θ*: the weights after the last task. F_t: the diagonal of that task's Fisher matrix, taken in
    eval mode on its training rows without augmentation. p: the softmax over the classes seen so
    far, so that the last layer's rows of later classes stay free.

    Args:
        weight: λ. As losses are means over rows, λ = 1 counts a past task like the current one.
        gamma: γ, how much of the past survives each task.
        samples: rows per task that F_t is taken on, at most; None takes all.
        fisher: "sampled" (labels drawn from p: the true Fisher) or "empirical" (true labels).
    """

    task_by_task = True
    paper = "Schwarz et al."
    year = 2018
    mode: Tensor
    importance: Tensor
    consolidated: Tensor

    def __init__(
        self,
        weight: float = 0.3,
        gamma: float = 1.0,
        samples: int | None = 1024,
        fisher: Fisher = "sampled",
    ) -> None:
        super().__init__()
        check_penalty(weight, gamma)
        self.weight, self.gamma = weight, gamma
        self._rows = TaskRows("oewc", samples, fisher)
        self.register_buffer("consolidated", torch.tensor(False))
        self._is_consolidated = False

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        """Make room for θ* and F̃, one long vector each."""
        if self.weight > 0:
            theta = flat(trainable(network).values()).detach()
            self.register_buffer("mode", theta)
            self.register_buffer("importance", torch.zeros_like(theta))

    def start(self, step: Step) -> None:
        if self.weight > 0 and self.consolidated:
            warn_if_stiff("oewc", self.weight, float(self.importance.max()), step.fit.recipe)

    def losses(self, step: Step) -> Terms:
        if self.weight == 0 or not self._is_consolidated:
            return {}
        moved = flat(trainable(step.network).values()) - self.mode
        return {"oewc": self.weight / 2 * (self.importance * moved.square()).sum()}

    def end_task(self, step: Step) -> None:
        if self.weight == 0:
            return
        network, theta = unwrap(step.network), trainable(step.network)
        self.importance.mul_(self.gamma)
        with evaluating(network):
            for x, y in self._rows.batches(step):
                squares = diagonal_fisher(network, theta, x, y, step.seen)
                self.importance.add_(flat(squares.values()), alpha=1 / self._rows.count(step))
            self.mode.copy_(flat(theta.values()))
        self.consolidated.fill_(True)
        self.loaded()

    def loaded(self) -> None:
        self._is_consolidated = bool(self.consolidated)

    def extra_repr(self) -> str:
        return f"weight={self.weight}, gamma={self.gamma}, fisher={self._rows.fisher!r}"
