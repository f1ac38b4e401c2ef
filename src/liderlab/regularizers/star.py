"""STAR: stability-inducing weight perturbation (Eskandar et al., 2025)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.random import fork_rng

from ..errors import check_numbers
from ..functional.losses import kl_divergence
from ..functional.perturbation import Layers, of_length, worst_perturbation
from ..types import Batch, Terms
from .base import Regularizer
from .consolidation import trainable

if TYPE_CHECKING:
    from ..training.step import Step

START = 0.1
"""Length of the random δ that the ascent starts from, as a share of the radius."""


class STAR(Regularizer):
    r"""Keeps predictions on well-remembered samples stable under the worst change of the weights.

        L = λ · max_δ 1/n Σ_i KL(q_θ(x_i) ‖ q_{θ+δ}(x_i)),    ‖δ_l‖ ≤ γ ‖θ_l‖ for every layer l

    x_1, …, x_n: the rows of a draw from the memory that the network classifies right; there is no
    term with fewer than two. q: the softmax over all classes. θ_l: the weights of linear layers and
    convolutions. δ comes from gradient ascent; q_θ and δ are held constant in the gradient of L,
    which therefore is that of the perturbed network.

    Args:
        weight: λ.
        gamma: γ, how far each layer may move.
        steps: of the ascent, each γ‖θ_l‖/steps long.
    """

    needs_memory = True
    paper = "Eskandar et al."
    year = 2025

    def __init__(self, weight: float = 0.1, gamma: float = 0.01, steps: int = 1) -> None:
        super().__init__()
        check_numbers(weight=weight, at_least=0)
        check_numbers(gamma=gamma, at_least=0, at_most=1)
        check_numbers(steps=steps, at_least=1, at_most=1000, whole=True)
        self.weight, self.gamma, self.steps = weight, gamma, steps

    def losses(self, step: Step) -> Terms:
        if self.weight == 0 or not (batch := step.draw(generator=step.generator("star"))):
            return {}
        with torch.no_grad():
            clean = _logits(step, batch.x)
        counted = _counted(step, batch, clean)
        weights = {n: w for n, w in trainable(step.network).items() if w.dim() > 1}

        def divergence(delta: Layers) -> Tensor:
            moved = {name: weights[name] + change for name, change in delta.items()}
            return counted * kl_divergence(clean, _logits(step, batch.x, moved))

        radius = {name: self.gamma * w.detach().norm() for name, w in weights.items()}
        delta = worst_perturbation(
            lambda delta: step.gradient(divergence(delta)),
            radius,
            _noise(step, weights, radius),
            self.steps,
        )
        return {"star": self.weight * divergence(delta)}

    def extra_repr(self) -> str:
        return f"weight={self.weight}, gamma={self.gamma}, steps={self.steps}"


def _logits(step: Step, x: Tensor, weights: Layers | None = None) -> Tensor:
    """Logits in training mode; BatchNorm's statistics stay, and all passes drop the same units."""
    with fork_rng([x.device] if x.is_cuda else []):
        return step.probe(x, weights)


def _counted(step: Step, batch: Batch, logits: Tensor) -> Tensor:
    """Weights per row whose mean averages the rows that are classified right, on all ranks; zeros
    if there are fewer than two. No number is read from the device."""
    right = logits.argmax(1) == batch.y
    count = right.sum()
    step.team.total(count)
    share = batch.rows_in_all / count.clamp_min(1) * (count > 1)
    return right.to(logits.dtype) * share.to(logits.dtype)


def _noise(step: Step, weights: Layers, radius: Layers) -> dict[str, Tensor]:
    """A small random δ, as the gradient at δ = 0 is zero; the same on all ranks."""
    generator = step.generator("star")
    return {
        name: of_length(torch.randn(w.shape, generator=generator).to(w), START * radius[name])
        for name, w in weights.items()
    }
