r"""The buffer guessing game: which samples of the first task does the model rehearse?

Each sample's score is the mean height of the decision surface around it, in probabilities p among
the task's own classes (task-incremental),

    s_x = E_δ [ p(x + δ)_y − max_{i ≠ y} p(x + δ)_i ],      δ ~ N(0, noise²),

and the ROC curve shows how well the scores separate rehearsed samples from other samples. A model
that overfits its memory gives it away.
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
from .pixels import Normalisation, Pixels, pixel_size
from .scores import Model, check_data, margin, scores, shift_labels


@dataclass(frozen=True, eq=False)
class GuessingGame(AnalysisResult):
    """scores, in_memory: (n,). false_positive_rate, true_positive_rate: the ROC curve."""

    auc: float
    scores: np.ndarray
    in_memory: np.ndarray
    false_positive_rate: np.ndarray
    true_positive_rate: np.ndarray


def guessing_game(
    model: Model,
    memory: Tensor,
    data: tuple[Tensor, Tensor],
    *,
    task_classes: Sequence[int] | None = None,
    noise: float = 0.1,
    perturbations: int = 16,
    against: Literal["others", "highest"] = "others",
    normalisation: Normalisation | None = None,
    generator: torch.Generator | None = None,
) -> GuessingGame:
    """Play the game with a model, the samples in its memory, and the first task's data.

    Args:
        model: any function from inputs (n, …) to scores (n, classes).
        memory: a mask (n,) of the samples in memory, or their inputs (m, …), which `found_in`
            looks up among the data.
        data: x and y of the first task.
        task_classes: the task's (consecutive) classes, to which predictions are restricted.
        noise: standard deviation of the perturbations, in pixels of 0…1 (see `normalisation`).
        perturbations: their number; 0 scores the samples themselves.
        against: "others", the paper's decision function S in probabilities; or "highest", the
            paper's sentence taken literally: the right class included, so never above 0.
        normalisation: how inputs come from pixels; by default they are pixels in 0…1.
        generator: draws the perturbations.

    >>> x, y = torch.tensor([[2.0, 0.0], [0.1, 0.0], [0.0, 3.0], [0.0, 0.0]]), [0, 0, 1, 1]
    >>> rehearsed = torch.tensor([True, False, True, False])  # the samples with large margins
    >>> guessing_game(lambda x: x, rehearsed, (x, torch.tensor(y)), perturbations=0).auc
    1.0
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    x, y = data
    check_data(x, y, task_classes)
    if against not in ("others", "highest"):
        raise unknown("against", str(against), ("others", "highest"))
    inside = memory.cpu() if memory.dtype == torch.bool else found_in(memory, x)
    if inside.shape != y.shape:
        raise ValueError(f"Expected a mask of {len(y)} samples, but got {tuple(inside.shape)}.")
    if not 0 < int(inside.sum()) < len(y):
        raise ValueError(
            "Expected some of the data in memory and some not, but there are "
            f"{int(inside.sum())} of {len(y)} in memory."
        )
    generator = generator or torch.Generator().manual_seed(0)
    scale = noise * pixel_size(normalisation or Pixels(), x)
    total = torch.zeros(len(y), dtype=torch.float64)
    for _ in range(max(perturbations, 1)):
        moved = x
        if perturbations:
            moved = x + scale * torch.randn(x.shape, generator=generator).to(x)
        probabilities = scores(model, moved, task_classes).double().softmax(1)
        height = margin(probabilities, shift_labels(y, task_classes).cpu())
        total += height.clamp_max(0) if against == "highest" else height
    mean = (total / max(perturbations, 1)).numpy()
    false, true, _ = roc_curve(inside.numpy(), mean)
    return GuessingGame(
        auc=float(roc_auc_score(inside.numpy(), mean)),
        scores=mean,
        in_memory=inside.numpy(),
        false_positive_rate=false,
        true_positive_rate=true,
    )


def found_in(memory: Tensor, x: Tensor) -> Tensor:
    """(n,) True where a sample of x (n, …) equals, to the bit, one of memory (m, …).

    >>> found_in(torch.tensor([[5, 6]]), torch.tensor([[1, 2], [5, 6]]))
    tensor([False,  True])
    """
    stored = {row.tobytes() for row in memory.to(x.dtype).cpu().flatten(1).numpy()}
    return torch.tensor([row.tobytes() in stored for row in x.cpu().flatten(1).numpy()])
