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
    "run": "liderlab.runs.execute",
    "RunConfig": "liderlab.config.schema",
}

__all__ = ["__version__", "analysis", *_MODULES]

if TYPE_CHECKING:
    from liderlab.regularizers.lider import LiDER as LiDER


def __getattr__(name: str) -> Any:
    if name == "analysis":
        return import_module("liderlab.analysis")
    if name not in _MODULES:
        raise AttributeError(f"module 'liderlab' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
