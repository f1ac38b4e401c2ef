"""Losses per row, as the methods combine them."""

import torch
import torch.nn.functional as F
from torch import Tensor


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """−log softmax(logits)_y, one value per row: (n, c), (n,) → (n,)."""
    return F.cross_entropy(logits, y, reduction="none")


def masked_cross_entropy(logits: Tensor, y: Tensor, allowed: Tensor) -> Tensor:
    """Cross-entropy over the allowed classes only: the others' logits count as −∞.

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
