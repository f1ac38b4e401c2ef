"""Early stopping: end a fit when its validation accuracy no longer rises, at the best weights."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from ..distributed.team import Team
from ..types import State, Stream, Task, seen_classes
from .evaluation import accuracy, score


class EarlyStopping:
    """Keeps the best weights of the fit in training: those of the first epoch with the highest
    accuracy. Weights are the network's parameters and buffers, and the parameters of `others`: the
    method and the regularisers. Their buffers and the memory go on.

    patience: epochs without a new best accuracy after which the fit ends. own_classes: choose among
    the classes of an image's task, not among all classes seen so far.
    """

    def __init__(self, patience: int, stream: Stream, own_classes: bool = False) -> None:
        self._patience, self._stream, self._own_classes = patience, stream, own_classes
        self.fits: list[dict[str, Any]] = []
        """Of every fit: its task, epochs trained, the best epoch, and that epoch's accuracy."""
        self._kept: State = {}

    def begin(self, task: int) -> None:
        self.fits.append({"task": task, "epochs": 0, "best": 0, "accuracy": None})

    def accuracy(self, network: nn.Module, tasks: Sequence[Task], team: Team) -> float:
        """Mean accuracy on the validation images of these tasks; of the network's own scores, as
        some classifiers are made only when a task has ended."""
        seen = seen_classes(self._stream.tasks[: tasks[-1].index + 1])
        found = []
        for task in tasks:
            assert task.validation is not None
            scores, y = score(network, self._stream, task.validation, team=team)
            found.append(accuracy(scores, y, task.classes if self._own_classes else seen))
        return fmean(found)

    def stops(self, accuracy: float, network: nn.Module, others: Sequence[nn.Module]) -> bool:
        """Take note of an epoch; whether the fit has to end."""
        fit = self.fits[-1]
        fit["epochs"] += 1
        if fit["accuracy"] is None or accuracy > fit["accuracy"]:
            fit |= {"best": fit["epochs"], "accuracy": accuracy}
            self._kept = {
                "network": {name: value.clone() for name, value in network.state_dict().items()},
                "others": [parameter.detach().clone() for parameter in _parameters(others)],
            }
        return int(fit["epochs"] - fit["best"]) >= self._patience

    def restore(self, network: nn.Module, others: Sequence[nn.Module]) -> None:
        """Go back to the best weights."""
        if self._kept:
            network.load_state_dict(self._kept["network"])
            with torch.no_grad():
                for parameter, value in zip(_parameters(others), self._kept["others"], strict=True):
                    parameter.copy_(value)
        self._kept = {}

    def state_dict(self) -> State:
        return {"fits": [dict(fit) for fit in self.fits], "kept": self._kept}

    def load_state_dict(self, state: State) -> None:
        self.fits = [dict(fit) for fit in state["fits"]]
        self._kept = state["kept"]


def _parameters(modules: Sequence[nn.Module]) -> list[Tensor]:
    return [parameter for module in modules for parameter in module.parameters()]
