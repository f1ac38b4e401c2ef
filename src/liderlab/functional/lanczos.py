"""The largest eigenvalues of a symmetric matrix that is given by its products with vectors.

Lanczos' method (scipy's `eigsh`) keeps all products of a power iteration. Where eigenvalues lie
close together, as those of convolutions and Hessians do, it needs tens of products instead of
hundreds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]
"""(n,) → (n,): a symmetric matrix times a vector."""


def top_eigenvalues(
    product: Product,
    size: int,
    k: int = 1,
    *,
    like: Tensor | None = None,
    tol: float = 1e-4,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The k largest eigenvalues, in descending order: (k,) float64.

    size: n. like: a tensor of the dtype and on the device that `product` expects. tol: relative to
    the eigenvalue; limited by the products' precision. generator: draws the start vector.

    >>> matrix = torch.diag(torch.arange(10.0))
    >>> [round(value, 3) for value in top_eigenvalues(lambda v: matrix @ v, 10, k=2).tolist()]
    [9.0, 8.0]
    """
    from scipy.sparse.linalg import LinearOperator, eigsh  # takes half a second

    if not 1 <= k <= size:
        raise ValueError(f"Expected 1 ≤ k ≤ {size}, the size of the matrix, but got {k}.")
    like = torch.zeros(()) if like is None else like

    def multiply(vector: np.ndarray) -> np.ndarray:
        image = product(torch.from_numpy(vector.reshape(-1)).to(like))
        return image.detach().double().cpu().numpy()

    if size <= max(2 * k + 1, 20):  # smaller than the basis that Lanczos would build
        columns = np.stack([multiply(row) for row in np.eye(size)])
        values = np.linalg.eigvalsh((columns + columns.T) / 2)
    else:
        generator = generator or torch.Generator().manual_seed(0)
        start = torch.randn(size, generator=generator, dtype=torch.float64).numpy()
        if not multiply(start).any():  # the matrix is zero, which eigsh refuses
            return torch.zeros(k, dtype=torch.float64)
        operator = LinearOperator((size, size), matvec=multiply, dtype=np.float64)
        values = eigsh(operator, k, which="LA", v0=start, tol=tol, return_eigenvectors=False)
    return torch.from_numpy(np.sort(values)[::-1][:k].copy())
