"""The graph of nearest neighbours among features, and the spectrum of its Laplacian."""

from __future__ import annotations

import torch
from torch import Tensor


def soft_neighbors(distances: Tensor, k: int) -> Tensor:
    """A differentiable choice of the k nearest of every row: (n, n) → (n, n), rows sum up to k.

        W = Σ_{r<k} p_r,    p_r = softmax(z_r),    z_0 = −distances,    z_{r+1} = z_r + log(1 − p_r)

    Each round takes out of the next what it has chosen (Plötz and Roth, 2018); no row chooses
    itself. The largest p of a row may round to one: 1 − p is then taken as the sum of the others.

    >>> soft_neighbors(torch.tensor([[0.0, 1, 9e3], [1, 0, 8e3], [9e3, 8e3, 0]]), 1).round()
    tensor([[0., 1., 0.],
            [1., 0., 0.],
            [0., 1., 0.]])
    """
    itself = torch.eye(len(distances), dtype=torch.bool, device=distances.device)
    z = (-distances).masked_fill(itself, -torch.inf)
    chosen = z.softmax(1)
    for _ in range(k - 1):
        p = z.softmax(1)
        top = torch.zeros_like(itself).scatter(1, z.argmax(1, keepdim=True), True)
        others = z.masked_fill(top, -torch.inf).logsumexp(1, keepdim=True)
        rest = others - z.logsumexp(1, keepdim=True)
        z = z + torch.where(top, rest, torch.log1p(-p.masked_fill(top, 0.0)))
        chosen = chosen + z.softmax(1)
    return chosen


def neighbor_laplacian(features: Tensor, k: int) -> Tensor:
    """L = I − D^(−½) A D^(−½) of the graph that joins every row to its k nearest: (n, d) → (n, n).

    A is 1 where one of two rows is among the other's k nearest, and 0 elsewhere; its gradient is
    that of W + Wᵀ for W = `soft_neighbors`. D: the diagonal of A's row sums. Distances are squared.
    """
    if len(features) <= k:
        raise ValueError(f"Expected more than {k} rows for {k} neighbours, got {len(features)}.")
    distances = (features[:, None] - features).square().sum(2)
    soft = soft_neighbors(distances, k)
    far = distances.detach().fill_diagonal_(torch.inf)
    nearest = torch.zeros_like(far).scatter(1, far.topk(k, largest=False).indices, 1.0)
    soft = soft + soft.mT
    joined = torch.maximum(nearest, nearest.mT) + (soft - soft.detach())
    root = joined.sum(1).rsqrt()
    return torch.eye(len(far), dtype=far.dtype, device=far.device) - root[:, None] * joined * root


def spectral_gap(laplacian: Tensor, parts: int) -> Tensor:
    """Σ_{j ≤ parts} λ_j − λ_{parts+1} of the ascending eigenvalues: low if the graph falls apart
    into so many parts.

    >>> spectral_gap(torch.diag(torch.tensor([0.0, 0.0, 2.0])), 2)
    tensor(-2.)
    """
    values = torch.linalg.eigvalsh(laplacian)
    return values[:parts].sum() - values[parts]
