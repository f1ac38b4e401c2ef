r"""Flatness around a minimum: loss and accuracy under Gaussian noise in the weights.

    θ' = θ + σ · ε,    ε ~ N(0, 1),    in each weight alike ("absolute"), or
    θ' = θ + σ · ‖θ_f‖ / √d_f · ε      in the d_f weights of each filter f ("filter"),

which is independent of the weights' scale: a filter's noise has σ times the filter's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from ..errors import unknown
from .analysis_result import AnalysisResult
from .scores import accuracy, check_data, cross_entropy, scores

Scale = Literal["absolute", "filter"]


@dataclass(frozen=True, eq=False)
class WeightPerturbation(AnalysisResult):
    """loss (cross-entropy) and accuracy (percent): (len(sigmas), draws)."""

    sigmas: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    scale: str


def weight_perturbation(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    sigmas: Sequence[float] = (0, 0.005, 0.01, 0.02, 0.04),
    draws: int = 10,
    scale: Scale = "absolute",
    classes: Sequence[int] | None = None,
    generator: torch.Generator | None = None,
) -> WeightPerturbation:
    """Loss and accuracy on (x, y) under Gaussian noise in all trainable weights.

    Each draw of ε serves all sigmas, so that curves over σ are smooth. The model is not changed.

    >>> layer = nn.Linear(2, 2)
    >>> x, y = torch.randn(8, 2), torch.zeros(8, dtype=torch.long)
    >>> weight_perturbation(layer, x, y, sigmas=(0, 1), draws=3).loss.shape
    (2, 3)
    """
    check_data(x, y, classes)
    if scale not in ("absolute", "filter"):
        raise unknown("scale", str(scale), ("absolute", "filter"))
    if draws < 1:
        raise ValueError(f"Expected draws ≥ 1, but got {draws}.")
    generator = generator or torch.Generator().manual_seed(0)
    weights = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    loss, right = np.zeros((len(sigmas), draws)), np.zeros((len(sigmas), draws))
    perturbed = _PerturbedModel(model)
    for draw in range(draws):
        noise = {name: _noise(value, scale, generator) for name, value in weights.items()}
        for row, sigma in enumerate(sigmas):
            perturbed.weights = {name: w + sigma * noise[name] for name, w in weights.items()}
            logits = scores(perturbed, x)
            loss[row, draw] = float(cross_entropy(logits.double(), y.cpu(), classes))
            right[row, draw] = accuracy(logits, y.cpu(), classes)
    return WeightPerturbation(np.array(sigmas, dtype=float), loss, right, scale)


class _PerturbedModel(nn.Module):
    """The model with other weights, which can be replaced between calls."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.weights: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        return functional_call(self.model, self.weights, (x,))


def _noise(weight: Tensor, scale: Scale, generator: torch.Generator) -> Tensor:
    noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype).to(weight.device)
    if scale == "absolute":
        return noise
    if weight.dim() < 2:  # biases and BatchNorm's factors: each value is a filter
        return noise * weight.abs()
    filters = weight.flatten(1)
    length = filters.norm(dim=1) / filters.shape[1] ** 0.5
    return noise * length.reshape(-1, *[1] * (weight.dim() - 1))
