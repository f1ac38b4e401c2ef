r"""Adversarial attacks, and a model's accuracy under them.

    FGSM (one step):   x' = x + ε · sign ∇_x L(f(x), y)
    PGD (many steps):  x' ← Π_ε [ x' + a · sign ∇_x L(f(x'), y) ],  from a random start

Π_ε keeps every pixel within ε of its start, and between black and white.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..errors import unknown
from .analysis_result import AnalysisResult
from .pixels import Normalisation, Pixels, input_limits, pixel_size
from .scores import (
    BATCH,
    Model,
    accuracy,
    check_data,
    cross_entropy,
    device_of,
    in_eval_mode,
    scores,
)

Attack = Literal["fgsm", "pgd"]


@dataclass(frozen=True, eq=False)
class Robustness(AnalysisResult):
    """accuracy: by attack, in percent, for each of epsilons (in pixels of 0…1)."""

    epsilons: np.ndarray
    accuracy: dict[str, np.ndarray]


def robustness(
    model: Model,
    x: Tensor,
    y: Tensor,
    *,
    epsilons: Sequence[float] = (0, 1 / 255, 2 / 255, 4 / 255, 8 / 255),
    attacks: Sequence[Attack] = ("fgsm", "pgd"),
    classes: Sequence[int] | None = None,
    normalisation: Normalisation | None = None,
    steps: int = 10,
    generator: torch.Generator | None = None,
) -> Robustness:
    """Accuracy under attacks of growing size.

    Args:
        model: differentiable, from inputs (n, …) to scores (n, classes).
        epsilons: sizes of the attacks, in pixels of 0…1; 0 is the plain accuracy.
        classes: predictions (and attacks) are restricted to these consecutive classes.
        normalisation: how inputs come from pixels; by default they are pixels in 0…1.
        steps: of PGD, each of 2.5 ε / steps. generator: draws PGD's start.

    >>> x, y = torch.tensor([[0.5, 0.4], [0.3, 0.4]]), torch.tensor([0, 1])
    >>> robustness(lambda x: x, x, y, epsilons=(0, 0.1), attacks=["fgsm"]).accuracy
    {'fgsm': array([100.,   0.])}
    """
    check_data(x, y, classes)
    for name in attacks:
        if name not in ("fgsm", "pgd"):
            raise unknown("attack", name, ("fgsm", "pgd"))
    normalisation = normalisation or Pixels()
    generator = generator or torch.Generator().manual_seed(0)
    results: dict[str, np.ndarray] = {}
    for name in attacks:
        values = []
        for epsilon in epsilons:
            moved = x
            if epsilon > 0 and name == "fgsm":
                moved = fgsm(model, x, y, epsilon, classes, normalisation)
            elif epsilon > 0:
                moved = pgd(model, x, y, epsilon, classes, normalisation, steps, generator)
            values.append(accuracy(scores(model, moved), y.cpu(), classes))
        results[name] = np.array(values)
    return Robustness(np.array(epsilons, dtype=float), results)


def fgsm(
    model: Model,
    x: Tensor,
    y: Tensor,
    epsilon: float,
    classes: Sequence[int] | None = None,
    normalisation: Normalisation | None = None,
) -> Tensor:
    """x after one step of size ε up the loss in every pixel; untargeted."""
    normalisation = normalisation or Pixels()
    step = epsilon * pixel_size(normalisation, x)
    low, high = input_limits(normalisation, x)
    return (x + step * loss_gradient(model, x, y, classes).sign()).clamp(low, high)


def pgd(
    model: Model,
    x: Tensor,
    y: Tensor,
    epsilon: float,
    classes: Sequence[int] | None = None,
    normalisation: Normalisation | None = None,
    steps: int = 10,
    generator: torch.Generator | None = None,
) -> Tensor:
    """x after `steps` steps of 2.5 ε / steps up the loss, within ε of x."""
    normalisation = normalisation or Pixels()
    generator = generator or torch.Generator().manual_seed(0)
    reach = epsilon * pixel_size(normalisation, x)
    low, high = input_limits(normalisation, x)
    low, high = torch.maximum(low, x - reach), torch.minimum(high, x + reach)
    start = 2 * torch.rand(x.shape, generator=generator).to(x) - 1
    moved = (x + reach * start).clamp(low, high)
    for _ in range(steps):
        climb = 2.5 / steps * reach * loss_gradient(model, moved, y, classes).sign()
        moved = (moved + climb).clamp(low, high)
    return moved


def loss_gradient(
    model: Model, x: Tensor, y: Tensor, classes: Sequence[int] | None = None
) -> Tensor:
    """∇_x of each sample's cross-entropy, in the shape of x; parameters keep their `.grad`."""
    device, parts = device_of(model, x), []
    with in_eval_mode(model), torch.enable_grad():
        for rows, labels in zip(x.split(BATCH), y.split(BATCH), strict=True):
            point = rows.detach().to(device).clone().requires_grad_()
            loss = cross_entropy(model(point), labels.to(device), classes) * len(rows)
            parts.append(torch.autograd.grad(loss, point)[0].to(x.device))
    return torch.cat(parts)
