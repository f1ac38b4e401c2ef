"""Perturbations of a network's weights, in a ball around each layer, and of its features."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Layers = Mapping[str, Tensor]


def of_length(direction: Tensor, length: Tensor | float) -> Tensor:
    """The direction with this length; zero stays zero.

    >>> of_length(torch.tensor([3.0, 4.0]), 10.0)
    tensor([6., 8.])
    """
    tiny = torch.finfo(direction.dtype).tiny
    return direction * (length / direction.norm().clamp_min(tiny))


def worst_perturbation(
    gradient: Callable[[Layers], Layers], radius: Layers, start: Layers, steps: int = 1
) -> dict[str, Tensor]:
    """Ascend from δ = start within ‖δ_l‖ ≤ r_l, every layer l by a share of its radius:

        δ_l ← Π( δ_l + r_l/steps · g_l/‖g_l‖ ),    g = gradient(δ),   Π: onto the ball of radius r_l

    >>> uphill = {"w": torch.tensor([0.0, 5.0])}
    >>> start = {"w": torch.zeros(2)}
    >>> worst_perturbation(lambda delta: uphill, {"w": torch.tensor(2.0)}, start)["w"]
    tensor([0., 2.])
    """
    delta = dict(start)
    for _ in range(steps):
        uphill = gradient(delta)
        for name, r in radius.items():
            moved = delta[name] + of_length(uphill[name], r / steps)
            delta[name] = torch.where(moved.norm() > r, of_length(moved, r), moved)
    return delta


def along_gradient(features: Tensor, gradient: Tensor, share: Tensor) -> Tensor:
    """h + s · ‖h‖² · g for every row: (n, …), (n, …), (n,) → (n, …). ‖h‖² is held constant.

    >>> h, g = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])
    >>> along_gradient(h, g, torch.tensor([0.2]))
    tensor([[8., 4.]])
    """
    size = features.detach().flatten(1).square().sum(1) * share
    return features + size.reshape(-1, *[1] * (features.dim() - 1)) * gradient
