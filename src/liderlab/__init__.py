"""liderlab: a lab for rehearsal-based continual learning, with LiDER at its heart.

>>> from liderlab import LiDER
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The module of every public name, imported on first use: `import liderlab` is quick, and so is the
# command line.
_MODULES = {
    "LiDER": "liderlab.regularizers.lider",
    "Regularizer": "liderlab.regularizers.base",
    "REGULARIZERS": "liderlab.regularizers",
    "Method": "liderlab.methods.base",
    "METHODS": "liderlab.methods",
    "BACKBONES": "liderlab.backbones",
    "BENCHMARKS": "liderlab.streams",
    "Memory": "liderlab.memory",
    "Column": "liderlab.memory",
    "Network": "liderlab.backbones.network",
    "split": "liderlab.streams.splitting",
    "Images": "liderlab.streams.splitting",
    "add_benchmark": "liderlab.streams.datasets.arrays",
    "Step": "liderlab.training.step",
    "Batch": "liderlab.types",
    "Task": "liderlab.types",
    "Stream": "liderlab.types",
    "Fit": "liderlab.types",
    "Recipe": "liderlab.types",
    "load": "liderlab.runs.load",
    "run": "liderlab.api.single_run",
    "extend": "liderlab.api.single_run",
    "RunResult": "liderlab.api.run_result",
    "sweep": "liderlab.api.many_runs",
    "SweepResult": "liderlab.api.many_runs",
    "compare": "liderlab.api.seed_comparison",
    "RunConfig": "liderlab.config.schema",
}

__all__ = ["__version__", "analysis", *_MODULES]

if TYPE_CHECKING:  # the same names once more, for type checkers and editors
    from liderlab import analysis as analysis
    from liderlab.api.many_runs import SweepResult as SweepResult
    from liderlab.api.many_runs import sweep as sweep
    from liderlab.api.run_result import RunResult as RunResult
    from liderlab.api.seed_comparison import compare as compare
    from liderlab.api.single_run import extend as extend
    from liderlab.api.single_run import run as run
    from liderlab.backbones import BACKBONES as BACKBONES
    from liderlab.backbones.network import Network as Network
    from liderlab.config.schema import RunConfig as RunConfig
    from liderlab.memory import Column as Column
    from liderlab.memory import Memory as Memory
    from liderlab.methods import METHODS as METHODS
    from liderlab.methods.base import Method as Method
    from liderlab.regularizers import REGULARIZERS as REGULARIZERS
    from liderlab.regularizers.base import Regularizer as Regularizer
    from liderlab.regularizers.lider import LiDER as LiDER
    from liderlab.runs.load import load as load
    from liderlab.streams import BENCHMARKS as BENCHMARKS
    from liderlab.streams.datasets.arrays import add_benchmark as add_benchmark
    from liderlab.streams.splitting import Images as Images
    from liderlab.streams.splitting import split as split
    from liderlab.training.step import Step as Step
    from liderlab.types import Batch as Batch
    from liderlab.types import Fit as Fit
    from liderlab.types import Recipe as Recipe
    from liderlab.types import Stream as Stream
    from liderlab.types import Task as Task


def __getattr__(name: str) -> Any:
    if name == "analysis":
        return import_module("liderlab.analysis")
    if name not in _MODULES:
        raise AttributeError(f"module 'liderlab' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
