"""SAM: sharpness-aware minimisation (Foret et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from ..errors import check_numbers
from ..functional.sharpness import ascent
from ..types import Gradient
from .base import Regularizer


class SAM(Regularizer):
    r"""Steps down the gradient of the worst point near the weights, which favours flat minima.

        θ ← θ − lr · ∇L(θ + ε),    ε = ρ · ∇L(θ) / ‖∇L(θ)‖                       (Eq. 2)
        adaptive:  ε = ρ · θ² ∘ ∇L(θ) / ‖ |θ| ∘ ∇L(θ) ‖       (ASAM, Kwon et al., 2021, Eq. 9)

    L: all terms of the step, those of the method and of other regularisers, on the same rows and
    replay draws both times. A step costs two forward and two backward passes.

    Args:
        rho: ρ, the radius of the neighbourhood; 0 switches it off.
        adaptive: scale the neighbourhood by the size of each weight.
    """

    off: ClassVar[Mapping[str, Any]] = {"rho": 0.0}
    paper = "Foret et al., Sharpness-Aware Minimization for Efficiently Improving Generalization"
    year = 2021

    def __init__(self, rho: float = 0.05, adaptive: bool = False) -> None:
        super().__init__()
        check_numbers(rho=rho, at_least=0, at_most=1e38)  # float32
        self.rho, self.adaptive = rho, adaptive
        self._weights: dict[str, torch.Tensor] = {}

    def attach(self, network: torch.nn.Module, example: torch.Tensor | None = None) -> None:
        self._weights = dict(network.named_parameters())

    @property
    def perturbs(self) -> bool:
        return self.rho > 0

    def perturb(self, gradient: Gradient, gradient_at: Callable[[Gradient], Gradient]) -> Gradient:
        scale = {n: self._weights[n].detach().abs() for n in gradient} if self.adaptive else None
        return gradient_at(ascent(gradient, self.rho, scale))

    def extra_repr(self) -> str:
        return f"rho={self.rho}, adaptive={self.adaptive}"
