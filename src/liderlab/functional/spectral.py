"""How much a linear layer can stretch its input: ‖W‖ = σ₁(W), Eq. 4 of the paper.

A convolution is a linear map of whole images, whose norm depends on their size, its padding and its
stride; its matrix is never built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import vjp
from torch.nn.functional import linear
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from .lanczos import top_eigenvalues


def linear_part(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """x ↦ W x for a layer x ↦ W x + b: its output minus its output for zeros."""
    return lambda x: layer(x) - layer(torch.zeros_like(x))


def operator_norm(
    apply: Callable[[Tensor], Tensor],
    shape: tuple[int, ...],
    *,
    like: Tensor | None = None,
    tol: float = 1e-6,
    generator: torch.Generator | None = None,
) -> float:
    """σ₁ of a linear function of tensors of this shape, by Lanczos on WᵀW.

    Wᵀ is the function's vector-Jacobian product: for a convolution, the transposed convolution.

    >>> round(operator_norm(lambda x: 3 * x.flip(0), (5,)), 4)
    3.0
    """
    zeros = torch.zeros(shape) if like is None else like.new_zeros(shape)
    transpose = vjp(apply, zeros)[1]

    def square(vector: Tensor) -> Tensor:
        with torch.no_grad():
            return transpose(apply(vector.reshape(shape)))[0].reshape(-1)

    size = zeros.numel()
    top = top_eigenvalues(square, size, like=zeros, tol=tol, generator=generator)
    return float(top.clamp_min(0).sqrt())


def weight_map(layer: nn.Module) -> Callable[[Tensor], Tensor] | None:
    """x ↦ W x of a linear layer or convolution, without bias and past all hooks; None for others.

    Unlike `linear_part` it takes one pass, and its gradient with respect to W is that of W x. A
    layer whose weight is a sum of parts (LoRA) gives it as `adapted_weight`.
    """
    if hasattr(type(layer), "adapted_weight"):
        return lambda x: linear(x, cast(Tensor, layer.adapted_weight))
    if isinstance(layer, nn.Linear):
        return lambda x: linear(x, layer.weight)
    if isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        return lambda x: layer._conv_forward(x, layer.weight, None)
    return None


def power_iteration(
    apply: Callable[[Tensor], Tensor], vector: Tensor, iterations: int = 1
) -> Tensor:
    """v ← WᵀW v / ‖WᵀW v‖ from a start vector: towards the direction that W stretches most.

    ‖W v‖ is then at most σ₁, and its gradient with v held constant tends to that of σ₁.

    >>> scales = torch.tensor([1.0, 3.0, 2.0])
    >>> power_iteration(lambda x: scales * x, torch.ones(3), 50).abs().round(decimals=3)
    tensor([0., 1., 0.])
    """
    for _ in range(iterations):
        with torch.enable_grad():
            x = vector.detach().requires_grad_()
            stretched = apply(x)
        (back,) = torch.autograd.grad(stretched, x, stretched.detach())
        norm = back.norm()
        vector = torch.where(norm > 0, back / norm, vector.detach())  # W = 0: any v will do
    return vector.detach()


def spectral_norm(
    layer: nn.Module,
    input_shape: tuple[int, ...],
    *,
    tol: float = 1e-6,
    generator: torch.Generator | None = None,
) -> float:
    """‖W‖ of a linear layer, convolution or BatchNorm in eval mode.

    input_shape: of one sample, (C, H, W) for a convolution of images.

    >>> layer = nn.Conv2d(1, 1, 3, padding=1, bias=False)
    >>> _ = nn.init.constant_(layer.weight, 1.0)  # sums 3x3 pixels: at most (1 + 2·cos(π/9))² of 8
    >>> round(spectral_norm(layer, (1, 8, 8)), 3)
    8.291
    """
    if isinstance(layer, nn.Linear):
        return float(torch.linalg.matrix_norm(layer.weight.detach().double(), 2))
    if isinstance(layer, _BatchNorm):
        return float(batch_norm_scale(layer).abs().max())
    if not isinstance(layer, _ConvNd):
        raise ValueError(
            f"Expected a linear layer, a convolution or BatchNorm, but got {type(layer).__name__}."
        )
    apply = linear_part(layer)
    shape = (1, *input_shape)
    return operator_norm(apply, shape, like=layer.weight.detach(), tol=tol, generator=generator)


def batch_norm_scale(layer: _BatchNorm) -> Tensor:
    """γ / √(running variance + ε): the factor of each channel of BatchNorm in eval mode."""
    if layer.running_var is None:
        raise ValueError("Expected BatchNorm with running statistics; else it is not linear.")
    scale = (layer.running_var + layer.eps).rsqrt().detach()
    return scale if layer.weight is None else scale * layer.weight.detach()
