"""How many rows pass through networks in a step: a cost that no machine changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from torch import Tensor

from ...backbones.network import Network
from ...config.merging import make_config
from ...config.schema import RunConfig
from .second_task import steps_of_second_task

STEPS = 5


def rows_per_step(config: RunConfig) -> float:
    """Rows that a step of this method, with these regularisers, lets pass forward through the
    network and its copies, in the second task of a small run."""
    method = config.method.model_dump()
    training = {"batch_size": config.training.batch_size}
    small = make_config(
        {
            "benchmark": {"name": "synthetic", "tasks": 2, "classes": 4, "per_class": 64},
            "backbone": {"name": "convnet-small", "width": 4},
            "method": method,
            "regularizers": config.regularizers,
            "memory": {"size": config.memory.size},
            "training": {**training, "replay_size": config.training.replay_size},
        }
    )
    with counted() as rows:
        steps = steps_of_second_task(small)
        rows.clear()
        taken = len(list(islice(steps, STEPS)))
    return sum(rows) / taken


@contextmanager
def counted() -> Iterator[list[int]]:
    """The rows of each pass through any network, to its scores or to its features."""
    rows: list[int] = []
    plain = {name: getattr(Network, name) for name in ("forward", "features")}

    def counting(made: Callable[..., Any]) -> Callable[..., Any]:
        def passed(self: Network, x: Tensor, *more: Any) -> Any:
            rows.append(len(x))
            return made(self, x, *more)

        return passed

    try:
        for name, made in plain.items():
            setattr(Network, name, counting(made))
        yield rows
    finally:
        for name, made in plain.items():
            setattr(Network, name, made)
