"""How much longer a step takes with regularisers than with the method alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...config.merging import make_config
from ...config.schema import RunConfig
from ...training.events import StepDone

ROUNDS = 40


def relative_cost(config: RunConfig, alone: RunConfig, rounds: int = ROUNDS) -> float:
    """The time of a step of `config` over that of `alone`: the median over steps in turns.

    On a CPU the processor's time counts, which other programs lengthen least.
    """
    from ...analysis.interleaved_timing import Ratio, time_in_turns

    both = {"with": _steps(config), "alone": _steps(alone)}
    actions = {name: partial(_take, steps) for name, steps in both.items()}
    times = time_in_turns(actions, rounds, "cpu" if config.device == "cpu" else "wall")
    return Ratio.of(times["with"], times["alone"]).value


def _steps(config: RunConfig) -> Iterator[StepDone]:
    from ...runs.build import completed
    from .second_task import steps_of_second_task

    tree = completed(config).model_dump()
    few = {"train_per_class": tree["training"]["batch_size"], "validation": None}
    return steps_of_second_task(make_config(tree, {"benchmark": few, "evaluate": "last"}))


def _take(steps: Iterator[StepDone]) -> None:
    float(sum(value.sum() for value in next(steps).terms.values()))  # waits for the device
