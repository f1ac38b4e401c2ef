r"""σ₁(M) of two feature maps, with a hand-written gradient: few passes over large tensors.

With the singular vectors u and v of σ₁ held constant (`singular`),

    σ = 1/N Σ_q α̅_q β̅_q,     α_p = x̂_p·u,   β_p = ŷ_p·v,     x̂ = x/|x|

x, y: vectors of the earlier and the later map. p: positions of a map. q: the N positions common to
both, to which a bar averages. Averaging is linear, so its adjoint can be applied to the numbers β̅_q
instead of to vectors. The gradient by a map is a rank-one term minus the map itself, both weighted
per row:

    ∂σ/∂x_p = w_p (u − α_p x̂_p),     w_p = 1/(N |x_p|) Σ_q ∂α̅_q/∂α_p β̅_q
"""

from functools import lru_cache
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .singular import power_iteration, product_vector, top_vectors

EPS = torch.finfo(torch.float32).eps
"""The authors add this to every norm; shorter vectors count as zero."""


def inverse_norm(norm: Tensor) -> Tensor:
    """The factor that makes a vector's length one; 0 for a zero vector, which gets no gradient."""
    return (norm > EPS) / (norm + EPS)


class Side:
    """One of the two maps: its vectors x (n, HW, C), and how its positions are averaged to N.

    Channels are averaged (or repeated) to `channels` in neighbouring groups, positions to `size`.
    """

    def __init__(self, feature: Tensor, channels: int, size: tuple[int, int]) -> None:
        self.full, self.size = (feature.shape[2], feature.shape[3]), size
        rows = feature.flatten(2).mT
        self.groups = None
        if feature.shape[1] != channels:
            self.groups = averaging(feature.shape[1], channels, feature.dtype, feature.device)
        self.x = rows if self.groups is None else rows @ self.groups
        self.norm = _norm(self.x)
        self.scale = inverse_norm(self.norm)

    @property
    def pools(self) -> bool:
        return self.full != self.size

    def average(self, rows: Tensor) -> Tensor:
        """(n, HW, c) → (n, N, c)"""
        if not self.pools:
            return rows
        return F.adaptive_avg_pool2d(rows.mT.unflatten(2, self.full), self.size).flatten(2).mT

    def spread(self, numbers: Tensor) -> Tensor:
        """The adjoint of `average`, for one number per position: (n, N, 1) → (n, HW, 1)."""
        if not self.pools:
            return numbers
        rows, columns = (
            averaging(full, size, numbers.dtype, numbers.device)
            for full, size in zip(self.full, self.size, strict=True)
        )
        return (rows @ numbers.reshape(-1, *self.size) @ columns.mT).flatten(1)[..., None]

    def along(self, vector: Tensor) -> Tensor:
        """x̂_p·u: (n, C, 1) → (n, HW, 1). A row times a matrix is the fastest form of it."""
        return self.scale * (vector.mT @ self.x.mT).mT


class SpatialCoupling(torch.autograd.Function):
    """(n, C, H, W), (n, D, h, w) → σ: (n,)"""

    @staticmethod
    def forward(
        ctx: Any, earlier: Tensor, later: Tensor, iterations: int | None, tol: float
    ) -> Tensor:
        size = (min(earlier.shape[2], later.shape[2]), min(earlier.shape[3], later.shape[3]))
        a, b = (Side(feature, earlier.shape[1], size) for feature in (earlier, later))
        if a.pools or b.pools:
            left, right = a.average(a.x * a.scale), b.average(b.x * b.scale)
        else:  # M is the same if one side carries the lengths of both
            left, right = a.x, b.x * (a.scale * b.scale)
        u, v = top_vectors(left.mT, right.mT, iterations, tol)
        alpha, beta = a.along(u), b.along(v)
        alpha_common, beta_common = a.average(alpha), b.average(beta)
        positions = size[0] * size[1]
        saved: list[Tensor] = []
        ctx.sides = []
        for side, vector, own, other in ((a, u, alpha, beta_common), (b, v, beta, alpha_common)):
            weight = side.spread(other) * side.scale / positions
            saved += [side.x, vector.mT, weight, -weight * own / side.norm.clamp_min(EPS)]
            ctx.sides.append((side.groups, side.full))
        ctx.save_for_backward(*saved)
        return (alpha_common * beta_common).sum((1, 2)) / positions

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_sample, saved = gradient[:, None, None], ctx.saved_tensors
        found: list[Tensor | None] = [None, None]
        for i, (groups, full) in enumerate(ctx.sides):
            if ctx.needs_input_grad[i]:
                x, vector, weight, shrink = saved[4 * i : 4 * i + 4]
                rows = (x * (shrink * by_sample)).addcmul_(weight * by_sample, vector)
                rows = rows if groups is None else _product(rows, groups.mT)
                found[i] = rows.mT.unflatten(2, full)
        return *found, None, None


class BatchCoupling(torch.autograd.Function):
    r"""(B, …), (B, …) → σ: ()

    The vectors are the B whole samples, each far longer than B. Their Gram matrices G (B x B) hold
    all that is needed: u = Σ_i p_i x̂_i, so that α = Ĝ p, and the gradient is C X with
    C = diag(w) (1 pᵀ − diag(α)) diag(1/|x|).
    """

    @staticmethod
    def forward(
        ctx: Any, earlier: Tensor, later: Tensor, iterations: int | None, tol: float
    ) -> Tensor:
        samples, (a, b) = len(earlier), (_flat(earlier), _flat(later))
        products = a @ a.mT, b @ b.mT
        norms = [product.diagonal()[:, None].sqrt() for product in products]
        scales = [inverse_norm(norm) for norm in norms]
        first, second = (s * g * s.mT for s, g in zip(scales, products, strict=True))
        if iterations is None:
            q = product_vector(first, second)
        else:
            q = power_iteration(first @ second, iterations, tol)
        p = _unit_combination(first, second @ q)
        q = _unit_combination(second, q)
        alpha, beta = first @ p, second @ q
        coefficients = []
        for norm, scale, weights, own, other in zip(
            norms, scales, (p, q), (alpha, beta), (beta, alpha), strict=True
        ):
            weight = other * scale / samples
            shrink = (weight * own / norm.clamp_min(EPS))[:, 0]
            coefficients.append(weight * (weights * scale).mT - shrink.diag())
        ctx.save_for_backward(earlier, later, *coefficients)
        return (alpha * beta).sum() / samples

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        found: list[Tensor | None] = [None, None]
        for i in range(2):
            if ctx.needs_input_grad[i]:
                rows = _product(gradient * saved[2 + i], _flat(saved[i]))
                found[i] = _unflat(rows, saved[i])
        return *found, None, None


def spatial_coupling(earlier: Tensor, later: Tensor, iterations: int | None, tol: float) -> Tensor:
    """One σ per sample, over the positions of its maps: (n, C, H, W), (n, D, h, w) → (n,)."""
    return SpatialCoupling.apply(earlier, later, iterations, tol)  # type: ignore[no-untyped-call]


def batch_coupling(earlier: Tensor, later: Tensor, iterations: int | None, tol: float) -> Tensor:
    """One σ for the batch, over its whole samples: (B, …), (B, …) → ()."""
    return BatchCoupling.apply(earlier, later, iterations, tol)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=256)
def averaging(inputs: int, outputs: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(inputs, outputs): the matrix of adaptive average pooling.

    >>> averaging(4, 2, torch.float32, torch.device("cpu")).T
    tensor([[0.5000, 0.5000, 0.0000, 0.0000],
            [0.0000, 0.0000, 0.5000, 0.5000]])
    """
    return F.adaptive_avg_pool1d(torch.eye(inputs, dtype=dtype, device=device)[None], outputs)[0]


def _norm(rows: Tensor) -> Tensor:
    """(n, N, C) → (n, N, 1). torch's own norm is many times slower if channels are strided."""
    if rows.stride(2) == 1:
        return cast(Tensor, torch.linalg.vector_norm(rows, dim=2, keepdim=True))
    return rows.square().sum(2, keepdim=True).sqrt()


def _unit_combination(gram: Tensor, weights: Tensor) -> Tensor:
    """p, scaled so that Σ p_i x̂_i has length one: (B, B), (B, 1) → (B, 1)."""
    length = (weights.mT @ gram @ weights).clamp_min(0).sqrt()
    return weights / length.clamp_min(torch.finfo(gram.dtype).tiny)


def _product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b in full precision, also if backward() is called under autocast."""
    with torch.autocast(a.device.type, enabled=False):
        return a @ b


def _flat(features: Tensor) -> Tensor:
    """(B, …) → (B, d), each sample in its order in memory, so that nothing is copied."""
    if _channels_last(features):
        return features.permute(0, 2, 3, 1).flatten(1)
    return features.flatten(1)


def _unflat(rows: Tensor, like: Tensor) -> Tensor:
    if _channels_last(like):
        n, c, h, w = like.shape
        return rows.reshape(n, h, w, c).permute(0, 3, 1, 2)
    return rows.reshape(like.shape)


def _channels_last(features: Tensor) -> bool:
    return features.dim() == 4 and features.is_contiguous(memory_format=torch.channels_last)
