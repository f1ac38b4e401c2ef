r"""Decision surfaces: where around a sample the model predicts the right class.

    S(x) = f(x)_t − max_{i ≠ t} f(x)_i                 on the responses before the softmax, and
    S(x + i·α + j·β)                                   on a grid of (i, j), with

α a random direction and β the first step of an untargeted FGSM attack. Both are ±1 in every
coordinate, so that i and j are sizes of perturbations, in pixels of 0…1, and j = ε is the attack
FGSM of size ε. The boundary is S = 0; the share of the grid with S > 0 is the area kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .analysis_result import AnalysisResult
from .attacks import loss_gradient
from .pixels import Normalisation, Pixels, pixel_size
from .scores import Model, check_data, margin, scores, shift_labels


@dataclass(frozen=True, eq=False)
class DecisionSurface(AnalysisResult):
    """The surface around n samples, on a grid of g x g perturbations.

    steps: (g,) values of i and of j. height: (g, g) mean S over the samples, rows by j (FGSM),
    columns by i (random). right: (g, g) percent of the samples with S > 0. kept: (n,) percent of
    the grid on which the sample has S > 0.
    """

    steps: np.ndarray
    height: np.ndarray
    right: np.ndarray
    kept: np.ndarray

    @property
    def area(self) -> float:
        """Mean percent of the grid kept."""
        return float(self.kept.mean())


def decision_surface(
    model: Model,
    x: Tensor,
    y: Tensor,
    *,
    extent: float = 0.1,
    points: int = 21,
    classes: Sequence[int] | None = None,
    normalisation: Normalisation | None = None,
    generator: torch.Generator | None = None,
) -> DecisionSurface:
    """The surface around these samples (n, …), averaged over them.

    Args:
        model: differentiable, from inputs (n, …) to responses (n, classes).
        extent: i and j run from −extent to extent, in pixels of 0…1.
        points: on each side of the grid; with an odd number, the sample is in the middle.
        classes: the consecutive classes that compete; all by default.
        normalisation: how inputs come from pixels; by default they are pixels in 0…1.
        generator: draws each sample's α.

    >>> x, y = torch.tensor([[0.5, 0.4]]), torch.tensor([0])  # S = x₀ − x₁: right by 0.1
    >>> surface = decision_surface(lambda x: x, x, y, extent=0.1, points=3)
    >>> surface.height[:, 1].round(3)  # along FGSM
    array([ 0.3,  0.1, -0.1])
    """
    check_data(x, y, classes)
    generator = generator or torch.Generator().manual_seed(0)
    unit = pixel_size(normalisation or Pixels(), x)
    alpha = unit * (2 * torch.randint(2, x.shape, generator=generator) - 1).to(x)
    beta = unit * loss_gradient(model, x, y, classes).sign()
    steps = torch.linspace(-extent, extent, points, dtype=torch.float64).to(x)
    target = shift_labels(y, classes).cpu()
    surface = torch.empty(points, points, len(x), dtype=torch.float64)
    for row, j in enumerate(steps):
        for column, i in enumerate(steps):
            responses = scores(model, x + i * alpha + j * beta, classes)
            surface[row, column] = margin(responses, target)
    right = (surface > 0).double() * 100
    return DecisionSurface(
        steps=steps.cpu().double().numpy(),
        height=surface.mean(2).numpy(),
        right=right.mean(2).numpy(),
        kept=right.mean((0, 1)).numpy(),
    )


@dataclass(frozen=True, eq=False)
class SurfaceHistory(AnalysisResult):
    """surfaces[group][t]: around a group of samples, after task t."""

    surfaces: dict[str, list[DecisionSurface]]

    def area(self, group: str) -> np.ndarray:
        """(tasks,) mean percent of the grid kept."""
        return np.array([surface.area for surface in self.surfaces[group]])


def follow_decision_surface(
    models: Iterable[Model],
    groups: Mapping[str, tuple[Tensor, Tensor]],
    *,
    extent: float = 0.1,
    points: int = 21,
    classes: Sequence[int] | None = None,
    normalisation: Normalisation | None = None,
    seed: int = 0,
) -> SurfaceHistory:
    """The surfaces around the same samples, with the same directions α, after each task.

    models: the model after each task; an iterable, so that they can be loaded one by one. groups:
    samples by name, such as "memory" and "others". The other arguments: see `decision_surface`.
    """
    surfaces: dict[str, list[DecisionSurface]] = {name: [] for name in groups}
    for model in models:
        for name, (x, y) in groups.items():
            surfaces[name].append(
                decision_surface(
                    model,
                    x,
                    y,
                    extent=extent,
                    points=points,
                    classes=classes,
                    normalisation=normalisation,
                    generator=torch.Generator().manual_seed(seed),
                )
            )
    return SurfaceHistory(surfaces)
