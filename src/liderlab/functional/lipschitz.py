r"""How strongly a stage of a network couples its output to its input.

Every form here is one quantity, the largest singular value of a *transmitting matrix*

    M = A Bᵀ / N,        A: (…, P, N) earlier features, B: (…, Q, N) later features,

of unit feature vectors (Eq. 6 of the paper, before squaring). It lies in [0, 1].

=========== ==================================================== ====== =======================
estimator   vectors (normalised to unit length)                  N      result
=========== ==================================================== ====== =======================
``spatial`` the channels at one position of one sample's map,    H·W    one σ per sample
            or of one of its tokens
``batch``   one sample's whole flattened map (Eq. 6 as printed)  batch  one σ for the batch
=========== ==================================================== ====== =======================

The singular vectors are found without gradient. Then σ = uᵀ M v = (Aᵀu)·(Bᵀv) / N with u and v held
constant, whose gradient is exactly that of a simple σ₁ (and a valid subgradient of a repeated one),
at the price of two matrix-vector products. A vector error of ε costs O(ε²) in the value and O(ε) in
the gradient.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import unknown

Reading = Literal["singular", "eigenvalue"]

EPS = torch.finfo(torch.float32).eps
"""What the authors add to every norm; vectors shorter than this count as zero."""


def unit(features: Tensor, dim: int) -> Tensor:
    """Vectors along `dim` scaled to unit length, in float32 at least.

    A zero vector stays zero and receives gradient zero, where plain x / (‖x‖ + ε) would send 1/ε.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), dim=1)
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    features = _precise(features)
    norm = torch.linalg.vector_norm(features, dim=dim, keepdim=True)
    return features * ((norm > EPS) / (norm + EPS))


def spatial_lipschitz(
    earlier: Tensor,
    later: Tensor,
    *,
    reading: Reading = "singular",
    iterations: int | None = 10,
    tol: float = 1e-6,
) -> Tensor:
    """The released form of Eq. 6: one estimate per sample, over the positions of its maps.

    The later map's channels are average-pooled to the earlier one's number, each position is
    normalised over its channels, and the larger map is average-pooled to the size of the smaller.
    Tokens (n, N, D) of a transformer are N positions with D channels. Beside a map, the last of
    them that fill a grid of its proportions are its patches in reading order; what stands in front
    (a class token) is left out.

    earlier: (n, C, H, W) or tokens, later: (n, D, h, w) or tokens → (n,), in [0, 1].
    iterations: power-iteration steps at most, stopped early once no σ moves by more than `tol` of
    itself; None decomposes M outright. reading: σ, or σ² as Eq. 6 prints it.

    >>> maps = torch.eye(2).reshape(1, 2, 2, 1)  # two positions, orthogonal channels
    >>> spatial_lipschitz(maps, maps)
    tensor([0.5000])
    """
    if {earlier.dim(), later.dim()} - {3, 4} or len(earlier) != len(later):
        raise ValueError(
            "Expected two maps (n, C, H, W), or tokens (n, N, D), of the same samples, "
            f"but got {tuple(earlier.shape)} and {tuple(later.shape)}."
        )
    earlier, later = _as_maps(earlier, later), _as_maps(later, earlier)
    if earlier.shape[2:].numel() == 1 and later.shape[2:].numel() == 1:
        raise ValueError(
            "The spatial estimate needs more than one position: for two 1x1 maps it is constantly "
            'one. Choose earlier stages, or estimator="batch".'
        )
    a = unit(earlier, dim=1)
    b = unit(_pool_channels(_precise(later), earlier.shape[1]), dim=1)
    a, b = _pool_to_smaller(a, b)
    return read(top_singular_value(a.flatten(2), b.flatten(2), iterations, tol), reading)


def batch_lipschitz(
    earlier: Tensor,
    later: Tensor,
    *,
    reading: Reading = "singular",
    divide: bool = True,
    iterations: int | None = 10,
    tol: float = 1e-6,
) -> Tensor:
    """Eq. 6 as printed: one estimate for a batch of flattened, L2-normalised samples.

    divide: M = F_kᵀ F_{k−1} / B, comparable between batch sizes; False leaves the paper's M, whose
    σ grows to B.

    earlier: (B, …), later: (B, …) → ().

    >>> batch_lipschitz(torch.eye(4), torch.eye(4))
    tensor(0.2500)
    """
    if earlier.dim() < 2 or later.dim() < 2 or len(earlier) != len(later):
        raise ValueError(
            "Expected two feature maps (B, …) of the same samples, "
            f"but got {tuple(earlier.shape)} and {tuple(later.shape)}."
        )
    if len(earlier) < 2:
        raise ValueError("The batch estimate needs at least two samples: for one it is always one.")
    a, b = unit(earlier.flatten(1), dim=1), unit(later.flatten(1), dim=1)
    sigma = top_singular_value(a.mT, b.mT, iterations, tol)
    return read(sigma if divide else sigma * len(a), reading)


def top_singular_value(
    a: Tensor, b: Tensor, iterations: int | None = 10, tol: float = 1e-6
) -> Tensor:
    """σ₁(A Bᵀ / N), differentiable once: (…, P, N), (…, Q, N) → (…)."""
    with torch.autocast(a.device.type, enabled=False):  # it would halve the products' precision
        with torch.no_grad():
            u, v = top_vectors(a, b, iterations, tol)
        return ((a.mT @ u) * (b.mT @ v)).sum((-2, -1)) / a.shape[-1]


def top_vectors(a: Tensor, b: Tensor, iterations: int | None, tol: float) -> tuple[Tensor, Tensor]:
    """The left and right singular vectors that belong to σ₁(A Bᵀ): (…, P, 1), (…, Q, 1)."""
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

    Starts from a fixed vector without symmetry, so that the result depends on nothing but the
    matrix. With tol > 0 it stops once the root of no eigenvalue moved by more than tol of itself;
    not on accelerators, where looking would cost more than it saves.
    """
    n = matrix.shape[-1]
    start = 1 + 0.5 * torch.cos(torch.arange(1, n + 1, dtype=matrix.dtype, device=matrix.device))
    vector = _direction(start.reshape(n, 1)).expand(*matrix.shape[:-1], 1)
    value = matrix.new_zeros(())
    for _ in range(iterations):
        image = matrix @ vector
        norm = torch.linalg.vector_norm(image, dim=-2, keepdim=True)
        vector = image / norm.clamp_min(torch.finfo(matrix.dtype).tiny)
        if tol > 0 and matrix.device.type == "cpu":
            if bool(((norm - value).abs() <= 2 * tol * norm).all()):
                break
            value = norm
    return vector


def _precise(features: Tensor) -> Tensor:
    return features if features.dtype == torch.float64 else features.float()


def _direction(columns: Tensor) -> Tensor:
    norm = torch.linalg.vector_norm(columns, dim=-2, keepdim=True)
    return columns / norm.clamp_min(torch.finfo(columns.dtype).tiny)


def _exact_vectors(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """By QR of both factors and an SVD of the small core R_a R_bᵀ."""
    (qa, ra), (qb, rb) = torch.linalg.qr(a), torch.linalg.qr(b)
    u, _, vh = torch.linalg.svd(ra @ rb.mT)
    return qa @ u[..., :1], qb @ vh.mT[..., :1]


def _as_maps(features: Tensor, beside: Tensor) -> Tensor:
    """Tokens (n, N, D) as a map: (n, D, N, 1), or (n, D, h, w) beside a map; maps as they are."""
    if features.dim() == 4:
        return features
    if beside.dim() == 3:
        return features.mT[..., None]
    tokens, (height, width) = features.shape[1], beside.shape[2:]
    common = math.gcd(height, width)
    across, along = height // common, width // common
    times = math.isqrt(tokens // (across * along))
    if times == 0:
        raise ValueError(
            f"Expected tokens that fill a grid of the proportions {across}:{along}, like the map "
            f"beside them, but got {tokens}: choose other stages, or from_input=False."
        )
    h, w = times * across, times * along
    return features[:, tokens - h * w :].mT.reshape(len(features), -1, h, w)


def _pool_channels(features: Tensor, channels: int) -> Tensor:
    """(n, D, h, w) → (n, C, h, w): neighbouring channels averaged (or repeated, if C > D)."""
    n, d, h, w = features.shape
    if d == channels:
        return features
    if d % channels == 0:  # equal groups: a mean over a view, far cheaper than the pooling kernel
        return features.unflatten(1, (channels, d // channels)).mean(2)
    pooled = F.adaptive_avg_pool1d(features.flatten(2).mT, channels)
    return pooled.mT.reshape(n, channels, h, w)


def _pool_to_smaller(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    size = (min(a.shape[2], b.shape[2]), min(a.shape[3], b.shape[3]))
    return _pool_to(a, size), _pool_to(b, size)


def _pool_to(features: Tensor, size: tuple[int, int]) -> Tensor:
    return features if features.shape[2:] == size else F.adaptive_avg_pool2d(features, size)


def read(sigma: Tensor, reading: Reading) -> Tensor:
    """σ, or σ² for those who want the eigenvalue."""
    if reading not in ("singular", "eigenvalue"):
        raise unknown("reading", reading, ("singular", "eigenvalue"))
    return sigma.square() if reading == "eigenvalue" else sigma
