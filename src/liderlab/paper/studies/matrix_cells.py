"""The cells of the matrix: a method with regularisers, the tries that tune it, its test runs.

Every cell is tuned with the same number of tries, by accuracy on a validation split and with a seed
of its own: first the method alone tries learning rates, then every regulariser tries strengths at
the best of them. The best try is then run on the test images, with other seeds. Nothing is chosen
on test images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...config.compatibility import why_not
from ...config.merging import make_config, merge
from ...config.options import complete
from ...config.schema import RunConfig
from ...errors import UserError
from ...methods import METHODS
from ...regularizers import REGULARIZERS
from .cases import METHOD_NAMES, SMOKE, STAND_IN, Request, with_epochs

Tree = dict[str, Any]
BENCHMARK, BUFFER, SMOKE_BUFFER = "split-cifar10", 500, 50
REGULARISERS = ("lider", "star", "casper", "mrfa", "sam", "spectral", "ssgd", "oewc")
TUNING_SEED = 1000
"""Of all tries; the test runs have the seeds 0, 1, …"""
VALIDATION = 0.1


@dataclass(frozen=True)
class Cell:
    """A method with regularisers, or alone."""

    method: str
    regularizers: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        """
        >>> Cell("er", ("lider", "star")).column, Cell("er").column
        ('lider+star', 'alone')
        """
        return "+".join(self.regularizers) or "alone"

    @property
    def label(self) -> str:
        name = METHOD_NAMES.get(self.method, self.method)
        return f"{name} + {self.column}" if self.regularizers else name


@dataclass(frozen=True)
class Try:
    """A cell at a learning rate. The factor multiplies its strengths, or a lone method's rate."""

    cell: Cell
    lr: float
    factor: float = 1.0

    @property
    def rate(self) -> float:
        return self.lr if self.cell.regularizers else self.lr * self.factor

    def changes(self) -> Tree:
        """The fields that differ from the method's own."""
        found = {name: strengths(name, self.factor) for name in self.cell.regularizers}
        return {"training": {"lr": self.rate}, "regularizers": found}


def factors(tries: int) -> list[float]:
    """A logarithmic grid around one, two values to a decade.

    >>> [round(factor, 3) for factor in factors(3)]
    [0.316, 1.0, 3.162]
    """
    return [10 ** ((number - (tries - 1) / 2) / 2) for number in range(tries)]


def strengths(regularizer: str, factor: float) -> Tree:
    """The options at whose zero a regulariser is off, times a factor.

    >>> strengths("lider", 0.5)
    {'alpha': 0.05, 'beta': 0.15}
    """
    made = REGULARIZERS.class_of(regularizer)
    defaults = complete(made, {}, regularizer, "regularizer")
    return {name: defaults[name] * factor for name, off in made.off.items() if off == 0}


def cells_of(request: Request) -> list[Cell]:
    """The cells that are asked for: each method alone first."""
    methods = request.methods or (("er-ace",) if request.smoke else ("er-ace", "der++"))
    columns = request.regularizers or (REGULARISERS[:2] if request.smoke else REGULARISERS)
    combinations = [tuple(column.split("+")) for column in columns if column != "alone"]
    for method in methods:
        if METHODS.class_of(method).fits_memory:
            raise UserError(
                f"{method} fits its memory with learning rates of its own, which the matrix cannot "
                "tune: leave it out of --methods"
            )
        for name in (name for names in combinations for name in names):
            if reason := why_not(method, name, {}):
                raise UserError(reason)
    return [Cell(method, names) for method in methods for names in [(), *combinations]]


def tries_of(cell: Cell, lr: float, request: Request) -> list[Try]:
    return [Try(cell, lr, factor) for factor in factors(request.tries)]


def untuned_rate(method: str, request: Request) -> float:
    """The learning rate that is asked for, or the benchmark's."""
    if request.lr is not None:
        return request.lr
    return make_config(_base(method, request)).training.lr


def tuning_config(attempt: Try, request: Request) -> RunConfig:
    """A try on the training images less the validation split."""
    held_out = {"benchmark": {"validation": VALIDATION}, "seed": TUNING_SEED}
    return _config(attempt, request, held_out)


def final_config(best: Try, request: Request, seed: int, steps: int | None = None) -> RunConfig:
    """A run on the test images. steps: all that the budget leaves to this cell."""
    often = 10 if request.smoke else 100
    changes: Tree = {"seed": seed, "evaluate": f"every:{often}"}
    whole = _config(best, request, changes)
    if steps is None:
        return whole
    from ...runs.build import completed

    # the scale has lowered the epochs by now; the budget then replaces them
    return make_config(completed(whole).model_dump(), {"training": {"budget": {"steps": steps}}})


def _config(attempt: Try, request: Request, changes: Tree) -> RunConfig:
    config = make_config(_base(attempt.cell.method, request), attempt.changes(), changes)
    return with_epochs(config, request.epochs)


def _base(method: str, request: Request) -> Tree:
    """The method alone, untuned."""
    name = request.benchmark or (STAND_IN if request.smoke else BENCHMARK)
    tree: Tree = {"benchmark": {"name": name}, "scale": request.scale}
    if request.smoke and name == STAND_IN:
        change = {"from": BENCHMARK, "to": name}
        tree |= SMOKE | {"scale": {"name": "smoke", "changes": {"benchmark.name": change}}}
    threads = {} if request.threads is None else {"threads": request.threads}
    rehearses = METHODS.class_of(method).rehearsal
    memory = {"memory": {"size": SMOKE_BUFFER if request.smoke else BUFFER}} if rehearses else {}
    tree |= {"method": {"name": method}, "device": request.device, **memory, **threads}
    return merge(tree, request.changed())


def command_of(cell: Cell, request: Request) -> str:
    """The command that runs this cell again, and the method alone, which it is compared with."""
    parts = ["lider study matrix", f"--scale {request.scale}", f"--seeds {request.seeds}"]
    parts += [f"--methods {cell.method}", f"--regularizers {cell.column}"]
    parts += [f"--tries {request.tries}", f"--budget {request.budget}"]
    parts += [] if request.lr is None else [f"--lr {request.lr:g}"]
    parts += [] if request.epochs is None else [f"--epochs {request.epochs}"]
    parts += [f"--set {change}" for change in request.changes]
    return " ".join([*parts, *([f"--benchmark {request.benchmark}"] if request.benchmark else [])])


def best_of(accuracies: Sequence[tuple[Try, float]]) -> Try:
    """The try of the highest accuracy; of equal ones, that nearest to the defaults."""
    from math import log

    return max(accuracies, key=lambda pair: (pair[1], -abs(log(pair[0].factor))))[0]
