r"""Flatness around a minimum, from the Hessian H of the loss in the weights.

The paper's measure is the sum of its eigenvalues, tr H, estimated with Hutchinson's random signs;
Lanczos' method gives the largest eigenvalues. Both need products H v only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..functional.hessian_products import Parameters, hessian_product, hutchinson_trace
from ..functional.lanczos import Product, top_eigenvalues
from ..regularizers.stages import eval_mode
from .analysis_result import AnalysisResult
from .scores import check_data, cross_entropy, device_of


@dataclass(frozen=True, eq=False)
class HessianSpectrum(AnalysisResult):
    """eigenvalues: the k largest, descending. trace_error: standard error of the trace."""

    eigenvalues: np.ndarray
    trace: float
    trace_error: float
    parameters: int


def hessian_spectrum(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    k: int = 5,
    trace_samples: int = 32,
    classes: Sequence[int] | None = None,
    batch: int = 256,
    tol: float = 1e-3,
    generator: torch.Generator | None = None,
) -> HessianSpectrum:
    """Top eigenvalues and trace of the Hessian of the mean cross-entropy on (x, y), in eval mode.

    Args:
        model: from inputs (n, …) to scores (n, classes); its trainable parameters count.
        k: number of eigenvalues. trace_samples: random sign vectors for the trace.
        classes: the softmax is over these consecutive classes; all by default.
        batch: rows differentiated at once. The trace takes `trace_samples` products H v, each as
            costly as a few gradients over (x, y); k eigenvalues take 20 or more, growing with k.
        tol: relative precision of the eigenvalues. generator: draws signs and start.

    >>> layer = nn.Linear(2, 2)
    >>> x, y = torch.randn(8, 2), torch.tensor([0, 1] * 4)
    >>> spectrum = hessian_spectrum(layer, x, y, k=2)
    >>> bool(spectrum.eigenvalues[0] >= spectrum.eigenvalues[1] >= 0)
    True
    """
    check_data(x, y, classes)
    device = device_of(model, x)
    x, y = x.to(device), y.to(device)
    parameters = {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
    size = sum(p.numel() for p in parameters.values())
    if size == 0:
        raise ValueError("Expected a model with trainable parameters.")
    generator = generator or torch.Generator().manual_seed(0)
    like = next(iter(parameters.values()))

    def part(rows: Tensor, labels: Tensor) -> Product:
        def loss(theta: Parameters) -> Tensor:
            value = cross_entropy(functional_call(model, theta, (rows,)), labels, classes)
            return value * (len(rows) / len(x))

        return hessian_product(loss, parameters)

    chunks = list(zip(x.split(batch), y.split(batch), strict=True))
    # Only the plain kernel of attention can be differentiated twice.
    with eval_mode(model), sdpa_kernel(SDPBackend.MATH):
        held = part(*chunks[0]) if len(chunks) == 1 else None  # several graphs may not fit

        def product(vector: Tensor) -> Tensor:
            if held is not None:
                return held(vector)
            return sum((part(*chunk)(vector) for chunk in chunks), torch.zeros_like(vector))

        top = top_eigenvalues(product, size, min(k, size), like=like, tol=tol, generator=generator)
        trace, error = hutchinson_trace(
            product, size, samples=trace_samples, like=like, generator=generator
        )
    return HessianSpectrum(top.numpy(), trace, error, size)
