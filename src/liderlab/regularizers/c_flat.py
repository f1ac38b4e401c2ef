"""C-Flat: flat minima for continual learning (Bian et al., 2024)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..errors import check_numbers
from ..functional.sharpness import ascent, combined
from ..types import Gradient
from .base import Regularizer


class CFlat(Regularizer):
    r"""Steps towards minima that are low and flat around the weights, in loss and in its gradient.

        g_1 = ∇L(θ + ρ ĝ_0),                   g_0 = ∇L(θ)          the worst loss nearby, as SAM
        g_2 = ∇L(θ + e),   g_3 = ∇L(θ + e + ρ ĝ_2),   e = ρ · (g_1 − g_0) / ‖g_1 − g_0‖
        θ ← θ − lr · ( g_1 + λ · (g_3 − g_2) )

    ĝ = g/‖g‖. g_3 − g_2 stands for ρ times the gradient of ‖∇L‖ where that norm is large nearby. L:
    all terms of the step, on the same rows and draws each time. A step costs four forward and
    backward passes.

    Args:
        rho: ρ, the radius of the neighbourhood; 0 switches it off.
        weight: λ, of the gradient's flatness; 0 leaves SAM, at the cost of SAM.
    """

    off: ClassVar[Mapping[str, Any]] = {"rho": 0.0}
    paper = "Bian et al., Make Continual Learning Stronger via C-Flat"
    year = 2024

    def __init__(self, rho: float = 0.2, weight: float = 0.2) -> None:
        super().__init__()
        check_numbers(rho=rho, weight=weight, at_least=0, at_most=1e38)  # float32
        self.rho, self.weight = rho, weight

    @property
    def perturbs(self) -> bool:
        return self.rho > 0

    def perturb(self, gradient: Gradient, gradient_at: Callable[[Gradient], Gradient]) -> Gradient:
        worst = gradient_at(ascent(gradient, self.rho))
        if self.weight == 0:
            return worst
        steeper = ascent(combined(worst, gradient, -1), self.rho)
        there = gradient_at(steeper)
        beyond = gradient_at(combined(steeper, ascent(there, self.rho)))
        return combined(worst, combined(beyond, there, -1), self.weight)

    def extra_repr(self) -> str:
        return f"rho={self.rho}, weight={self.weight}"
