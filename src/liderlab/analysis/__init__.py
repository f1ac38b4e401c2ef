"""Every analysis of the paper, as a function of your own model and data.

    from liderlab import analysis

    game = analysis.guessing_game(model, in_memory, (x, y), task_classes=range(10))
    print(game.auc)
    analysis.plots.draw_guessing_game({"ER-ACE": game}).savefig("roc.png")

None of them needs this package's runner, methods or data. What a model and data are: `scores`.
Every result is a frozen dataclass of numbers and arrays with `to_dict()` for JSON.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "guessing_game": "guessing",
    "found_in": "guessing",
    "GuessingGame": "guessing",
    "decision_surface": "surface",
    "follow_decision_surface": "surface",
    "DecisionSurface": "surface",
    "SurfaceHistory": "surface",
    "lipschitz_bound": "bounds",
    "lipschitz_constants": "bounds",
    "LipschitzBound": "bounds",
    "LipschitzConstants": "bounds",
    "robustness": "attacks",
    "fgsm": "attacks",
    "pgd": "attacks",
    "Robustness": "attacks",
    "weight_perturbation": "weight_noise",
    "WeightPerturbation": "weight_noise",
    "hessian_spectrum": "sharpness",
    "HessianSpectrum": "sharpness",
    "measure_in_child": "efficiency",
    "peak_memory": "efficiency",
    "throughput": "efficiency",
    "Measured": "efficiency",
    "Throughput": "efficiency",
    "toy_tasks": "toy",
    "toy_boundaries": "toy",
    "ToyBoundaries": "toy",
    "Pixels": "pixels",
}

__all__ = [*_HOMES, "plots"]

if TYPE_CHECKING:
    from . import plots as plots
    from .attacks import Robustness, fgsm, pgd, robustness
    from .bounds import LipschitzBound, LipschitzConstants, lipschitz_bound, lipschitz_constants
    from .efficiency import Measured, Throughput, measure_in_child, peak_memory, throughput
    from .guessing import GuessingGame, found_in, guessing_game
    from .pixels import Pixels
    from .sharpness import HessianSpectrum, hessian_spectrum
    from .surface import DecisionSurface, SurfaceHistory, decision_surface, follow_decision_surface
    from .toy import ToyBoundaries, toy_boundaries, toy_tasks
    from .weight_noise import WeightPerturbation, weight_perturbation


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module(f"{__name__}.plots")
    if name not in _HOMES:
        raise AttributeError(f"module 'liderlab.analysis' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
