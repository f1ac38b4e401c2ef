"""The leading singular vectors of a product of two matrices."""

import torch
from torch import Tensor


def top_vectors(a: Tensor, b: Tensor, iterations: int | None, tol: float) -> tuple[Tensor, Tensor]:
    """The left and right singular vectors of σ₁(A Bᵀ): (…, P, N), (…, Q, N) → (…, P, 1), (…, Q, 1).

    iterations: power-iteration steps at most; None decomposes exactly.
    """
    if iterations is None:
        return _exact_vectors(a, b)
    positions = a.shape[-1]
    if positions < min(a.shape[-2], b.shape[-2]):
        # Mᵀ M (B q) ∝ B (AᵀA)(BᵀB) q: iterate on the N x N side, where the matrices are small.
        q = power_iteration((a.mT @ a) @ (b.mT @ b), iterations, tol)
        v = _direction(b @ q)
        return _direction(a @ (b.mT @ v)), v
    m = a @ b.mT
    if m.shape[-2] < m.shape[-1]:
        u = power_iteration(m @ m.mT, iterations, tol)
        return u, _direction(m.mT @ u)
    v = power_iteration(m.mT @ m, iterations, tol)
    return _direction(m @ v), v


def power_iteration(matrix: Tensor, iterations: int, tol: float = 0.0) -> Tensor:
    """The leading eigenvector of (…, n, n) matrices with non-negative spectrum: (…, n, 1).

    It starts from a fixed vector without symmetry, so that the result depends on the matrix alone.
    With tol > 0 it stops once the root of every eigenvalue changes by at most a fraction tol.
    """
    n = matrix.shape[-1]
    start = 1 + 0.5 * torch.cos(torch.arange(1, n + 1, dtype=matrix.dtype, device=matrix.device))
    vector = _direction(start.reshape(n, 1)).expand(*matrix.shape[:-1], 1)
    value = matrix.new_zeros(())
    for _ in range(iterations):
        image = matrix @ vector
        norm = torch.linalg.vector_norm(image, dim=-2, keepdim=True)
        vector = image / norm.clamp_min(torch.finfo(matrix.dtype).tiny)
        if tol > 0:
            if bool(((norm - value).abs() <= 2 * tol * norm).all()):
                break
            value = norm
    return vector


def _direction(columns: Tensor) -> Tensor:
    norm = torch.linalg.vector_norm(columns, dim=-2, keepdim=True)
    return columns / norm.clamp_min(torch.finfo(columns.dtype).tiny)


def _exact_vectors(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """QR of both factors, then an SVD of the small core R_a R_bᵀ."""
    (qa, ra), (qb, rb) = torch.linalg.qr(a), torch.linalg.qr(b)
    u, _, vh = torch.linalg.svd(ra @ rb.mT)
    return qa @ u[..., :1], qb @ vh.mT[..., :1]


def product_vector(first: Tensor, second: Tensor) -> Tensor:
    """The leading eigenvector of F S for symmetric, positive semi-definite F and S: (n, 1).

    F S is not symmetric, but F^½ S F^½ is, and has the same eigenvalues. Computed in float64, as
    the root loses twice as many digits.
    """
    values, vectors = torch.linalg.eigh(first.double())
    root = vectors * values.clamp_min(0).sqrt() @ vectors.mT
    _, leading = torch.linalg.eigh(root @ second.double() @ root)
    return _direction(root @ leading[:, -1:]).to(first.dtype)
