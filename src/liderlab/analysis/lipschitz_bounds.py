r"""Lipschitz constants of a trained network, in two ways.

* The bound of Eqs. 4 and 5: ‖f‖ ≤ ∏_k ‖W_k‖, the product of its layers' spectral norms. It depends
  on the weights alone, and on their scale.
* λ_k as LiDER measures it: on samples, between feature maps, independent of their scale (Eq. 6).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from ..errors import unknown
from ..functional.lipschitz import Reading
from ..functional.spectral import batch_norm_scale, linear_part, operator_norm, spectral_norm
from ..regularizers.lider import LiDER
from ..regularizers.stage_constants import Estimator
from ..regularizers.stages import evaluating
from .analysis_result import AnalysisResult
from .scores import device_of

BatchNorms = Literal["fold", "separate", "ignore"]
Layer = tuple[str, nn.Module, tuple[int, ...]]
"""Name, module, and shape of its input without the batch axis."""


@dataclass(frozen=True, eq=False)
class LipschitzBound(AnalysisResult):
    """norms: ‖W_k‖ by layer, in running order. product: ∏_k ‖W_k‖. log10: of the product."""

    norms: dict[str, float]
    product: float
    log10: float


def lipschitz_bound(
    model: nn.Module,
    example: Tensor,
    *,
    batch_norm: BatchNorms = "fold",
    tol: float = 1e-6,
    generator: torch.Generator | None = None,
) -> LipschitzBound:
    """∏_k ‖W_k‖ over the linear layers, convolutions and BatchNorms that run.

    It bounds ‖f‖ for a chain of layers with 1-Lipschitz activations and pooling between them. In a
    residual network it is the paper's number but not a bound: there, a block's constant is at most
    ‖shortcut‖ + ∏ of its branch, which `norms` suffices to compute.

    Args:
        model: any network. example: an input (1, …), for the sizes that its layers work on.
        batch_norm: how BatchNorm, in eval mode, counts. "fold": as one layer with the convolution
            or linear layer that ran just before it; "separate": as a layer of its own, by its
            largest factor; "ignore": not at all.
        tol: relative precision of each squared norm. generator: draws the start of the iteration.

    >>> net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False))
    >>> _ = nn.init.eye_(net[0].weight), nn.init.constant_(net[2].weight, 1.0)
    >>> round(lipschitz_bound(net, torch.zeros(1, 2)).product, 4)
    1.4142
    """
    if batch_norm not in ("fold", "separate", "ignore"):
        raise unknown("batch_norm", str(batch_norm), ("fold", "separate", "ignore"))
    norms: dict[str, float] = {}
    previous: Layer | None = None
    for name, layer, shape in _linear_layers(model, example):
        if not isinstance(layer, _BatchNorm):
            norms[name] = spectral_norm(layer, shape, tol=tol, generator=generator)
            previous = (name, layer, shape)
        elif batch_norm == "fold" and previous and _fits(previous[1], layer):
            norms[previous[0]] = _folded_norm(previous, layer, tol, generator)
            previous = None
        elif batch_norm != "ignore":
            norms[name] = spectral_norm(layer, shape)
    if not norms:
        raise ValueError("Found no linear layer or convolution in this network.")
    log10 = sum(math.log10(norm) if norm > 0 else -math.inf for norm in norms.values())
    return LipschitzBound(norms, math.prod(norms.values()), log10)


def _linear_layers(model: nn.Module, example: Tensor) -> Iterator[Layer]:
    """The layers in running order, from one pass in eval mode."""
    seen: list[Layer] = []
    times: Counter[str] = Counter()

    def note(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Tensor, ...]) -> None:
            times[name] += 1  # a layer that runs twice counts twice
            run = name if times[name] == 1 else f"{name} ({times[name]})"
            seen.append((run, module, tuple(args[0].shape[1:])))

        return hook

    handles = [
        module.register_forward_pre_hook(note(name))
        for name, module in model.named_modules()
        if isinstance(module, (nn.Linear, _ConvNd, _BatchNorm))
    ]
    try:
        with evaluating(model):
            model(example.to(device_of(model, example)))
    finally:
        for handle in handles:
            handle.remove()
    yield from seen


def _fits(layer: nn.Module, norm: _BatchNorm) -> bool:
    width = layer.out_channels if isinstance(layer, _ConvNd) else getattr(layer, "out_features", 0)
    return width == norm.num_features


def _folded_norm(
    before: Layer, norm: _BatchNorm, tol: float, generator: torch.Generator | None
) -> float:
    """‖diag(s) W‖, where s holds BatchNorm's factor of every channel."""
    _, layer, shape = before
    scale = batch_norm_scale(norm)
    apply = linear_part(layer)
    if isinstance(layer, nn.Linear):
        weight = layer.weight.detach().double()
        return float(torch.linalg.matrix_norm(scale.double()[:, None] * weight, 2))
    factors = scale.reshape(-1, *[1] * (len(shape) - 1))
    return operator_norm(
        lambda x: factors * apply(x), (1, *shape), like=scale, tol=tol, generator=generator
    )


@dataclass(frozen=True, eq=False)
class LipschitzConstants(AnalysisResult):
    """constants: mean λ_k over the samples, by stage. mean: over the stages (Eq. 8)."""

    constants: dict[str, float]
    mean: float


def lipschitz_constants(
    model: nn.Module,
    x: Tensor,
    *,
    stages: Sequence[str] | None = None,
    estimator: Estimator = "spatial",
    reading: Reading = "singular",
    iterations: int | None = 50,
    from_input: bool = True,
) -> LipschitzConstants:
    """λ_k of each stage of the network in eval mode, on samples x, as LiDER computes it.

    The other arguments are those of `LiDER`. A copy is measured: the model is not changed.

    >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
    >>> list(lipschitz_constants(model, torch.rand(4, 3, 8, 8), stages=["0", "2"]).constants)
    ['0', '2']
    """
    copy, x = deepcopy(model), x.to(device_of(model, x))
    lider = LiDER(
        stages=stages,
        estimator=estimator,
        reading=reading,
        iterations=iterations,
        from_input=from_input,
    )
    lider.attach(copy, x[:2])
    lider.calibrate(x.split(256), max_samples=len(x))
    assert lider.targets is not None
    values = lider.targets.detach().cpu().tolist()
    return LipschitzConstants(
        dict(zip(lider.chain[1:], values, strict=True)), sum(values) / len(values)
    )
