"""Losses per row, which the methods combine, and their targets."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """−log softmax(logits)_y, one value per row: (n, c), (n,) → (n,)."""
    return F.cross_entropy(logits, y, reduction="none")


def masked_cross_entropy(logits: Tensor, y: Tensor, allowed: Tensor) -> Tensor:
    """Cross-entropy over the allowed classes only: logits of other classes count as −∞.

    logits: (n, c), y: (n,), allowed: (c,) mask → (n,)

    >>> allowed = torch.tensor([True, True, False])
    >>> masked_cross_entropy(torch.zeros(1, 3), torch.tensor([0]), allowed)
    tensor([0.6931])
    """
    lowest = torch.finfo(logits.dtype).min
    return cross_entropy(logits.masked_fill(~allowed, lowest), y)


def logit_distance(logits: Tensor, stored: Tensor) -> Tensor:
    """Mean squared distance to stored logits, one value per row: (n, c), (n, c) → (n,)."""
    return (logits - stored).square().mean(1)


def kl_divergence(logits: Tensor, other: Tensor) -> Tensor:
    """KL(p ‖ q) of p = softmax(logits), q = softmax(other), per row: (n, c), (n, c) → (n,).

    >>> kl_divergence(torch.zeros(1, 2), torch.tensor([[0.0, 0.0]]))
    tensor([0.])
    """
    p, q = logits.log_softmax(1), other.log_softmax(1)
    return (p.exp() * (p - q)).sum(1)


def distillation(logits: Tensor, old: Tensor, temperature: float) -> Tensor:
    """−Σ_c p*_c log p_c with p = softmax(z / T), p* = softmax(z* / T): (n, c), (n, c) → (n,).

    >>> distillation(torch.zeros(1, 2), torch.zeros(1, 2), temperature=2.0)
    tensor([0.6931])
    """
    target = (old / temperature).softmax(1)
    return -(target * (logits / temperature).log_softmax(1)).sum(1)


def feature_distance(features: Tensor, others: Tensor) -> Tensor:
    """‖a − b‖ / √d, one value per row: (n, d), (n, d) → (n,).

    >>> feature_distance(torch.tensor([[3.0, 4.0, 0.0, 0.0]]), torch.zeros(1, 4))
    tensor([2.5000])
    """
    return (features - others).norm(dim=1) / math.sqrt(features.shape[1])


def binary_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """−t log σ(z) − (1 − t) log(1 − σ(z)), the mean over classes: (n, c), (n, c) → (n,)."""
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(1)


def incremental_targets(y: Tensor, classes: int, old: Tensor) -> Tensor:
    """One-hot labels (n, classes), in whose first columns stand the old classes' former scores.

    >>> incremental_targets(torch.tensor([0, 2]), 3, torch.tensor([[0.9], [0.4]]))
    tensor([[0.9000, 0.0000, 0.0000],
            [0.4000, 0.0000, 1.0000]])
    """
    return torch.cat([old, F.one_hot(y, classes)[:, old.shape[1] :].to(old.dtype)], 1)


def head_margin(logits: Tensor, own: Tensor, other: Tensor, margin: float) -> Tensor:
    """max(0, m + max_other z − max_own z): how far the own head is from leading by the margin.

    logits: (n, c), own and other: masks (n, c) or (c,) → (n,)

    >>> head_margin(torch.tensor([[1.0, 2.0]]), *torch.eye(2).bool(), margin=0.5)
    tensor([1.5000])
    """
    lowest = torch.finfo(logits.dtype).min
    own_best = logits.masked_fill(~own, lowest).amax(1)
    other_best = logits.masked_fill(~other, lowest).amax(1)
    return (margin + other_best - own_best).relu()


def implant_logits(stored: Tensor, new: Tensor, y: Tensor, classes: range, gamma: float) -> Tensor:
    """Replace the stored logits of some classes by newer ones (X-DER).

    If an implanted logit would beat the true class's stored one (and that is positive), the row's
    implanted logits are scaled by γ · (true class's logit) / (largest implanted logit).
    stored, new: (n, c), y: (n,) → (n, c)

    >>> old, new = torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([[9.0, 4.0, 1.0]])
    >>> implant_logits(old, new, torch.tensor([0]), range(1, 3), gamma=0.5)
    tensor([[2.0000, 1.0000, 0.2500]])
    """
    if len(classes) == 0:
        return stored
    part = new[:, classes.start : classes.stop]
    true = stored.gather(1, y[:, None])
    largest = part.amax(1, keepdim=True)
    beaten = (largest > true) & (true > 0)  # a negative factor would reverse the order
    part = torch.where(beaten, gamma * true / largest * part, part)
    return torch.cat([stored[:, : classes.start], part, stored[:, classes.stop :]], 1)


def simplex_vertices(classes: int) -> Tensor:
    """The corners of a regular simplex, one per class: (classes − 1, classes), columns of length 1.

    Any two are equally far apart: their product is −1/(classes − 1).

    >>> simplex_vertices(2)
    tensor([[ 1., -1.]])
    """
    if classes < 2:
        raise ValueError(f"Expected at least 2 classes, but got {classes}.")
    m = classes - 1
    corner = torch.full((m, 1), (1 - math.sqrt(classes)) / m, dtype=torch.float64)
    corners = torch.cat([torch.eye(m, dtype=torch.float64), corner], 1)
    corners = corners - corners.mean(1, keepdim=True)
    return (corners / corners.norm(dim=0)).float()
