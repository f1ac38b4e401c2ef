"""Work that waits until the optimizer has taken its step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from ..distributed.batchnorm import average_statistics
from ..distributed.team import Team


class Deferred:
    """One step's waiting work: `Step` adds to it, and the loop runs it or, if the step was left
    out, drops it.

    actions: called in order. rows, rows_in_all: how many rows have moved BatchNorm's running
    statistics, on this rank and on all; the ranks' statistics are averaged with these weights.
    """

    def __init__(self, network: nn.Module, team: Team | None = None) -> None:
        self._network, self._team = network, team or Team()
        self.actions: list[Callable[[], Any]] = []
        self.rows, self.rows_in_all = 0.0, 0

    def run(self) -> None:
        if self.rows_in_all:
            average_statistics(self._network, self._team, self.rows / self.rows_in_all)
        for action in self.actions:
            action()
        self.drop()

    def drop(self) -> None:
        """Forget all of it: actions hold the step and its tensors, which would stay in memory."""
        self.actions, self.rows, self.rows_in_all = [], 0.0, 0
