"""Spectral regularisation: every layer's norm near one (Lewandowski et al., 2025)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ..errors import check_numbers
from ..functional.spectral import power_iteration, weight_map
from ..types import Terms
from .base import Regularizer
from .stages import evaluating, unwrap

if TYPE_CHECKING:
    from ..training.step import Step

START = 50
"""Power iterations when a fit begins; the weights then move little from step to step."""


class Spectral(Regularizer):
    r"""Keeps the norm of every linear layer and convolution near one. It sees no data.

        L = w Σ_l (σ₁(W_l) − 1)²

    σ₁(W_l): how much layer l stretches an input at most, as an operator: a convolution maps whole
    images of the size that it has in this network. σ₁ = ‖W v‖ for a vector v that a power iteration
    carries from step to step; its gradient is taken with v held constant.

    Args:
        weight: w.
        iterations: power iterations in a step.
    """

    paper = "Lewandowski et al."
    year = 2025

    def __init__(self, weight: float = 0.001, iterations: int = 3) -> None:
        super().__init__()
        check_numbers(weight=weight, at_least=0)
        check_numbers(iterations=iterations, at_least=1, whole=True)
        self.weight, self.iterations = weight, iterations
        self._maps: list[Callable[[Tensor], Tensor]] = []

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        """Make room for a vector v of every layer's input size."""
        if self.weight == 0:
            return
        if example is None:
            raise ValueError("spectral needs an example input, to know the sizes of the maps.")
        for layer, x in _inputs(unwrap(network), example).items():
            apply = weight_map(layer)
            assert apply is not None
            v = x.new_zeros(1, *(x.shape[-1:] if isinstance(layer, nn.Linear) else x.shape[1:]))
            self.register_buffer(f"vector{len(self._maps)}", v)
            self._maps.append(apply)
        if not self._maps:
            raise ValueError("Found no linear layer or convolution to regularise in this network.")

    def start(self, step: Step) -> None:
        for apply, vector in zip(self._maps, self.buffers(), strict=True):
            drawn = torch.randn(vector.shape, generator=step.generator("spectral"))
            vector.copy_(power_iteration(apply, drawn.to(vector), START))

    def losses(self, step: Step) -> Terms:
        if self.weight == 0:
            return {}
        norms = []
        for apply, vector in zip(self._maps, self.buffers(), strict=True):
            nearer = power_iteration(apply, vector, self.iterations)
            vector.copy_(nearer)
            norms.append(apply(nearer).norm())
        return {"spectral": self.weight * (torch.stack(norms) - 1).square().sum()}

    def extra_repr(self) -> str:
        return f"weight={self.weight}, iterations={self.iterations}"


def _inputs(network: nn.Module, example: Tensor) -> dict[nn.Module, Tensor]:
    """The input of every trained linear layer and convolution, in one pass of an example."""
    seen: dict[nn.Module, Tensor] = {}

    def note(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.setdefault(module, args[0])

    handles = [
        module.register_forward_pre_hook(note)
        for module in network.modules()
        if weight_map(module) is not None
        and (module.weight.requires_grad or hasattr(type(module), "adapted_weight"))
    ]
    try:
        with evaluating(network):
            network(example)
    finally:
        for handle in handles:
            handle.remove()
    return seen
