r"""How strongly a stage of a network couples its output to its input.

Both estimators compute the largest singular value of a *transmitting matrix*

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
from torch import Tensor

from ..errors import unknown
from .coupling import batch_coupling, spatial_coupling
from .token_grid import token_grid

Reading = Literal["singular", "eigenvalue"]


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
    Tokens (n, N, D) of a transformer are N positions with D channels. If only one of the two
    is a map, the last tokens count as patches in reading order, as many as fill a grid of the map's
    proportions; the tokens before them (a class token) are left out.

    earlier: (n, C, H, W) or tokens, later: (n, D, h, w) or tokens → (n,), in [0, 1].
    iterations: power-iteration steps at most, stopped early once every σ changes by at most a
    fraction `tol`; None decomposes M exactly. reading: σ, or σ² as Eq. 6 prints it.

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
            "The spatial estimate needs more than one position: for two 1x1 maps it is always "
            'one. Choose earlier stages, or estimator="batch".'
        )
    with torch.autocast(earlier.device.type, enabled=False):  # which halves the precision
        sigma = spatial_coupling(_precise(earlier), _precise(later), iterations, tol)
    return read(sigma, reading)


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

    divide: M = F_kᵀ F_{k−1} / B, comparable between batch sizes; False keeps the paper's M, whose
    σ can reach B.

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
    with torch.autocast(earlier.device.type, enabled=False):  # which halves the precision
        sigma = batch_coupling(_precise(earlier), _precise(later), iterations, tol)
    return read(sigma if divide else sigma * len(earlier), reading)


def _precise(features: Tensor) -> Tensor:
    return features if features.dtype == torch.float64 else features.float()


def _as_maps(features: Tensor, beside: Tensor) -> Tensor:
    """Tokens (n, N, D) as a map: (n, D, N, 1), or (n, D, h, w) beside a map; maps stay maps."""
    if features.dim() == 4:
        return features
    if beside.dim() == 3:
        return features.mT[..., None]
    tokens, (height, width) = features.shape[1], beside.shape[2:]
    h, w = token_grid(tokens, (height, width))
    if h == 0:
        common = math.gcd(height, width)
        raise ValueError(
            f"Expected tokens that fill a grid of the proportions {height // common}:"
            f"{width // common}, like the map beside them, but got {tokens}: choose other stages, "
            "or from_input=False."
        )
    return features[:, tokens - h * w :].mT.reshape(len(features), -1, h, w)


def read(sigma: Tensor, reading: Reading) -> Tensor:
    """σ, or σ², the eigenvalue."""
    if reading not in ("singular", "eigenvalue"):
        raise unknown("reading", reading, ("singular", "eigenvalue"))
    return sigma.square() if reading == "eigenvalue" else sigma
