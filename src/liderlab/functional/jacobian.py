r"""The local Lipschitz constant: how much a stage stretches small changes of one sample.

For later = g(earlier), sample by sample, it is the largest singular value of the Jacobian at each
sample, σ₁(J_i), J_i = ∂g/∂earlier at earlier_i. It bounds ‖g(z + δ) − g(z)‖ / ‖δ‖ for small δ, and
unlike the transmitting matrix of Eq. 6 it grows with the weights.

Power iteration finds u and v from products J v and Jᵀ u, without gradient. Then σ = uᵀ J v with u
and v held constant, whose gradient is exactly that of a simple σ₁.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .lipschitz import Reading, read


def jacobian_lipschitz(
    earlier: Tensor,
    later: Tensor,
    *,
    reading: Reading = "singular",
    iterations: int | None = 10,
    tol: float = 1e-6,
) -> Tensor:
    """σ₁ of each sample's Jacobian ∂later/∂earlier: (n,), differentiable.

    earlier: (n, …), a tensor from which autograd computed later: (n, …). Samples must not influence
    each other's output: put a network with BatchNorm into eval mode.
    iterations: power-iteration steps at most (a product with J and one with Jᵀ each), stopped early
    once every σ changes by at most a fraction `tol`; None builds and decomposes the Jacobians.
    reading: σ, or σ², the eigenvalue of JᵀJ.

    >>> z = torch.tensor([[1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    >>> jacobian_lipschitz(z, z.square()).tolist()  # J = diag(2 z)
    [4.0, 6.0]
    """
    if len(earlier) != len(later):
        raise ValueError(
            "Expected two feature maps (n, …) of the same samples, "
            f"but got {tuple(earlier.shape)} and {tuple(later.shape)}."
        )
    if not later.requires_grad or not earlier.requires_grad:
        raise ValueError("Expected a later map that autograd computed from the earlier one.")
    if iterations is None:
        u, v = _exact_vectors(earlier, later)
    else:
        u, v = _power_vectors(earlier, later, iterations, tol)
    wanted = torch.is_grad_enabled()
    with torch.enable_grad():
        pulled = _pull(later, earlier, u, create_graph=wanted)
        sigma = (pulled * v).flatten(1).sum(1)
    return read(sigma, reading)


def _power_vectors(
    earlier: Tensor, later: Tensor, iterations: int, tol: float
) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        # J v by differentiating Jᵀ w, which is linear in w: this needs autograd alone.
        w = torch.zeros_like(later, requires_grad=True)
        pulled = _pull(later, earlier, w, create_graph=True)
    u, v = torch.zeros_like(later), _start(earlier)
    value = torch.zeros((), device=earlier.device)
    for _ in range(iterations):
        u = _direction(_pull(pulled, w, v))[0]
        v, norm = _direction(_pull(later, earlier, u))
        if tol > 0:
            if bool(((norm - value).abs() <= tol * norm).all()):
                break
            value = norm
    return u, v


def _exact_vectors(earlier: Tensor, later: Tensor) -> tuple[Tensor, Tensor]:
    """The SVD of every J_i, which is built row by row."""
    rows = []
    for place in range(later[0].numel()):
        u = torch.zeros_like(later).flatten(1)
        u[:, place] = 1
        rows.append(_pull(later, earlier, u.view_as(later)).flatten(1))
    left, _, right = torch.linalg.svd(torch.stack(rows, dim=1), full_matrices=False)
    return left[:, :, 0].reshape(later.shape), right[:, 0].reshape(earlier.shape)


def _pull(output: Tensor, point: Tensor, vector: Tensor, create_graph: bool = False) -> Tensor:
    """(∂output/∂point)ᵀ vector; zeros if output does not depend on point."""
    return torch.autograd.grad(
        output, point, vector, retain_graph=True, create_graph=create_graph, materialize_grads=True
    )[0]


def _start(features: Tensor) -> Tensor:
    """The same random direction for every sample of this shape, from a generator of its own."""
    generator = torch.Generator().manual_seed(0)
    vector = torch.randn(features.shape[1:], generator=generator).to(features)
    return _direction(vector.expand_as(features))[0]


def _direction(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Each sample's part scaled to unit length, and its length (n,); zeros stay zeros."""
    norm = torch.linalg.vector_norm(vectors.flatten(1), dim=1)
    safe = norm.clamp_min(torch.finfo(vectors.dtype).tiny)
    return vectors / safe.reshape(-1, *[1] * (vectors.dim() - 1)), norm
