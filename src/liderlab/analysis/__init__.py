"""Every analysis of the paper, as a function of your own model and data.

    from liderlab import analysis

    game = analysis.guessing_game(model, in_memory, (x, y), task_classes=range(10))
    print(game.auc)
    analysis.plots.draw_guessing_game({"ER-ACE": game}).savefig("roc.png")

They need neither this package's runner nor its methods or data; `scores` defines models
and data. Every result is a frozen dataclass of numbers and arrays with `to_dict()` for JSON.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import plots as plots
    from .attacks import Robustness as Robustness
    from .attacks import fgsm as fgsm
    from .attacks import pgd as pgd
    from .attacks import robustness as robustness
    from .guessing import GuessingGame as GuessingGame
    from .guessing import found_in as found_in
    from .guessing import guessing_game as guessing_game
    from .lipschitz_bounds import LipschitzBound as LipschitzBound
    from .lipschitz_bounds import LipschitzConstants as LipschitzConstants
    from .lipschitz_bounds import lipschitz_bound as lipschitz_bound
    from .lipschitz_bounds import lipschitz_constants as lipschitz_constants
    from .loss_curvature import HessianSpectrum as HessianSpectrum
    from .loss_curvature import hessian_spectrum as hessian_spectrum
    from .pixels import Pixels as Pixels
    from .surface import DecisionSurface as DecisionSurface
    from .surface import SurfaceHistory as SurfaceHistory
    from .surface import decision_surface as decision_surface
    from .surface import follow_decision_surface as follow_decision_surface
    from .toy_problem import ToyBoundaries as ToyBoundaries
    from .toy_problem import toy_boundaries as toy_boundaries
    from .toy_problem import toy_tasks as toy_tasks
    from .training_cost import ChildMeasurement as ChildMeasurement
    from .training_cost import Throughput as Throughput
    from .training_cost import measure_in_child as measure_in_child
    from .training_cost import peak_memory as peak_memory
    from .training_cost import throughput as throughput
    from .weight_noise import WeightPerturbation as WeightPerturbation
    from .weight_noise import weight_perturbation as weight_perturbation

# Imported on first use: `figure_style` and `training_cost` need no torch.
_MODULES = {
    "attacks": "Robustness fgsm pgd robustness",
    "guessing": "GuessingGame found_in guessing_game",
    "lipschitz_bounds": "LipschitzBound LipschitzConstants lipschitz_bound lipschitz_constants",
    "loss_curvature": "HessianSpectrum hessian_spectrum",
    "pixels": "Pixels",
    "surface": "DecisionSurface SurfaceHistory decision_surface follow_decision_surface",
    "toy_problem": "ToyBoundaries toy_boundaries toy_tasks",
    "training_cost": "ChildMeasurement Throughput measure_in_child peak_memory throughput",
    "weight_noise": "WeightPerturbation weight_perturbation",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = [*_HOMES, "plots"]


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module(f"{__name__}.plots")
    if name not in _HOMES:
        raise AttributeError(f"module 'liderlab.analysis' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
