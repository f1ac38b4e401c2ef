"""A finished run goes on with further tasks: its state, in the shape of the longer run.

Network, memory, method, regularisers and random generators go on as they are. Where the new classes
need outputs, the old ones keep their weights and the new ones have those of the longer run's
initial network; logits stored in the memory are 0 for them. With `benchmark.room` the outputs are
there from the beginning: then the longer run equals one on all data, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..config.merging import make_config
from ..config.schema import RunConfig
from ..errors import UserError
from ..methods import METHODS
from ..types import State
from .build import Run
from .folder import RunFolder


def extended_config(
    run: str | Path, benchmark: Mapping[str, Any], *layers: Mapping[str, Any]
) -> RunConfig:
    """The configuration of a finished run with the tasks of a further benchmark behind its own.

    Another folder has the first one's options, such as the images' size, unless it names its own.
    """
    folder = RunFolder.open(run)
    folder.result()  # refuses an unfinished run
    config = folder.config()
    before, first = config.model_dump(mode="json"), config.benchmark
    alike = str(benchmark.get("name")).partition(":")[0] == first.name
    options = {k: v for k, v in first.options.items() if alike and k != "path"}
    then = {"then": [*before["benchmark"]["then"], {**options, **benchmark}]}
    return make_config(before, {"extends": str(run), "benchmark": then}, *layers)


def continue_from(work: Run) -> None:
    """Load the state of the run that `work` extends, and say so in its origin."""
    folder, loop = RunFolder.open(str(work.config.extends)), work.loop
    before, result = folder.config(), folder.result()
    _check(before, work.config)
    state = folder.read_memory(folder.state())
    tasks = len(result["class_incremental"]["accuracy_matrix"])
    if result["data"]["train"] != work.origin["data"]["train"][:tasks]:
        raise UserError(f"the data of {folder.path} have changed: bring those back")
    loop.load_state_dict(_fitted(state, work, len(result["classes"])))
    last = loop.stream.tasks[tasks - 1]
    if work.config.after_tasks == "every":  # on the next task, which the run before did not know
        loop.evaluation.after_task(
            loop.method.classifier(loop.network), loop.stream, last, loop.team
        )
    work.origin["extends"] = {
        "run": str(folder.path.absolute()),
        "tasks": tasks,
        "steps": state["steps"],
        "fingerprint": result["data"]["fingerprint"],
    }


def _check(before: RunConfig, now: RunConfig) -> None:
    """Refuse another network, method, memory or regulariser than the state belongs to."""
    if not METHODS.class_of(now.method.name).task_by_task:
        raise UserError(
            f"{now.method.name} does not train task by task: train it anew on the old and the new "
            "data together"
        )
    for name in ("method", "backbone", "regularizers", "seed"):
        if getattr(before, name) != getattr(now, name):
            raise UserError(f"{now.extends} has another {name}: an extension keeps it")
    if (before.memory.size, before.memory.policy) != (now.memory.size, now.memory.policy):
        raise UserError(f"{now.extends} has another memory: an extension keeps its size and policy")


def _fitted(state: State, work: Run, classes: int) -> State:
    """The state in the shapes of the longer run. classes: outputs of the run before."""
    loop = work.loop
    sizes = (classes, len(loop.stream.names))
    grown = {
        "network": _grown(state["network"], loop.network.state_dict(), sizes, "the network"),
        "method": _grown(state["method"], loop.method.state_dict(), sizes, work.config.method.name),
        "regularizers": [
            _grown(old, regularizer.state_dict(), sizes, name)
            for old, regularizer, name in zip(
                state["regularizers"], loop.regularizers, work.config.regularizers, strict=True
            )
        ],
        "evaluation": {
            name: _corner(state["evaluation"][name], new)
            for name, new in loop.evaluation.state_dict().items()
        },
    }
    memory = {
        name: _widened(old, loop.memory.data[name].shape[1:]) if old.dim() > 1 else old
        for name, old in state["memory"]["data"].items()
        if isinstance(loop.memory.data[name], Tensor)
    }
    grown["memory"] = state["memory"] | {"data": state["memory"]["data"] | memory}
    if sizes[0] != sizes[1]:
        grown["optimizer"] = {}  # its averages belong to the smaller network
    if "appeared" in state:
        grown["appeared"] = _corner(state["appeared"], torch.zeros(sizes[1], dtype=torch.bool))
    return state | grown


def _grown(old: Any, new: Any, classes: tuple[int, int], owner: str) -> Any:
    """`old` in the shape of `new`, which differs in the number of classes alone."""
    if isinstance(new, Mapping):
        return {key: _grown(old[key], value, classes, owner) for key, value in new.items()}
    if not isinstance(new, Tensor) or old.shape == new.shape:
        return old
    pairs = list(zip(old.shape, new.shape, strict=False))
    if old.dim() != new.dim() or any(a != b and (a, b) != classes for a, b in pairs):
        raise UserError(
            f"the state of {owner} cannot grow by {classes[1] - classes[0]} classes: train the "
            f"first run with room for them (--set benchmark.room={classes[1] - classes[0]})"
        )
    return _corner(old, new)


def _corner(old: Tensor, new: Tensor) -> Tensor:
    """`new` with the values of `old` where it has some."""
    if new.numel() == 0:
        return new
    whole = new.clone()
    whole[tuple(slice(n) for n in old.shape)] = old.to(new)
    return whole


def _widened(rows: Tensor, shape: Sequence[int]) -> Tensor:
    """Rows (n, …) with zeros in the columns that they lack."""
    return _corner(rows, rows.new_zeros(len(rows), *shape))
