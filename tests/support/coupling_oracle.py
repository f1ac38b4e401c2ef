"""σ₁ of two feature maps by plain autograd: what the written-out gradients are compared with."""

import torch
from torch import Tensor

from liderlab.functional.coupling import inverse_norm
from liderlab.functional.singular import top_vectors


def unit(features: Tensor, dim: int) -> Tensor:
    """Vectors along `dim` scaled to unit length; a zero vector stays zero, with gradient zero."""
    return features * inverse_norm(torch.linalg.vector_norm(features, dim=dim, keepdim=True))


def top_singular_value(a: Tensor, b: Tensor, iterations: int | None, tol: float) -> Tensor:
    """σ₁(A Bᵀ / N), differentiable once: (…, P, N), (…, Q, N) → (…)."""
    with torch.no_grad():
        u, v = top_vectors(a, b, iterations, tol)
    return ((a.mT @ u) * (b.mT @ v)).sum((-2, -1)) / a.shape[-1]
