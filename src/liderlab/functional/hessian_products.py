"""Curvature of a loss in its parameters: the Hessian H, given by its products with vectors.

`curvature` computes parts of the Fisher matrix, which is cheaper and equals H in expectation for a
well-fitted model. H itself also shows negative curvature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.func import grad, vjp

from .lanczos import Product

Parameters = dict[str, Tensor]
Loss = Callable[[Parameters], Tensor]
"""Parameters by name → the scalar loss."""


def flatten(parameters: Mapping[str, Tensor]) -> Tensor:
    """(n,): all values one after the other."""
    return torch.cat([value.reshape(-1) for value in parameters.values()])


def unflatten(vector: Tensor, like: Mapping[str, Tensor]) -> Parameters:
    """The inverse of `flatten`, for parameters of these names and shapes."""
    parts = vector.split([value.numel() for value in like.values()])
    return {n: p.reshape(v.shape) for (n, v), p in zip(like.items(), parts, strict=True)}


def hessian_product(loss: Loss, parameters: Mapping[str, Tensor]) -> Product:
    """v ↦ H v, the gradient differentiated once more; one graph serves all products.

    >>> loss = lambda p: (p["w"] ** 4).sum()
    >>> hessian_product(loss, {"w": torch.tensor([1.0, 2.0])})(torch.tensor([1.0, 1.0]))
    tensor([12., 48.])
    """
    point = {name: value.detach() for name, value in parameters.items()}
    pull = vjp(grad(loss), point)[1]
    return lambda vector: flatten(pull(unflatten(vector, point))[0])  # H is its own transpose


def hutchinson_trace(
    product: Product,
    size: int,
    *,
    samples: int = 32,
    like: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> tuple[float, float]:
    """tr H ≈ mean of zᵀ H z over random signs z, and the standard error of that mean.

    Exact for a diagonal H:

    >>> diagonal = torch.tensor([1.0, 2.0, 3.0])
    >>> hutchinson_trace(lambda v: diagonal * v, 3, samples=2)
    (6.0, 0.0)
    """
    if samples < 2:
        raise ValueError(f"Expected at least 2 samples, but got {samples}.")
    like = torch.zeros(()) if like is None else like
    generator = generator or torch.Generator().manual_seed(0)
    values = []
    for _ in range(samples):
        signs = (2 * torch.randint(2, (size,), generator=generator) - 1).to(like)
        values.append(float((signs * product(signs)).double().sum()))
    spread = torch.tensor(values, dtype=torch.float64)
    return float(spread.mean()), float(spread.std()) / math.sqrt(samples)
