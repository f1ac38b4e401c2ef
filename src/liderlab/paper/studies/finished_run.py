"""The network, memory and data of a finished run, as the analyses take them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ...analysis.guessing import found_in
from ...runs.build import build_stream
from ...runs.folder import RunFolder
from ...runs.load import load
from ...streams.splitting import SplitStream
from ...types import Source

Data = tuple[Tensor, Tensor]
"""Inputs as the network takes them, and classes."""


@dataclass(frozen=True)
class FinishedRun:
    """model: from normalised images to scores. memory: its columns, images as stored (uint8)."""

    folder: RunFolder
    model: nn.Module
    stream: SplitStream
    memory: dict[str, Tensor]

    def inputs(self, pixels: Tensor) -> Tensor:
        return self.stream.transform.sample(1, None)(pixels)

    def first_task(self) -> tuple[Tensor, Tensor, Tensor]:
        """Images (as stored) and classes of the first task, and which of them are in memory."""
        x, y = _all_rows(self.stream.tasks[0].train)
        return x, y, found_in(self.memory["x"][self.memory["task"] == 0], x)

    def some_training(self, most: int) -> Data:
        return self._some((task.train for task in self.stream.tasks), most)

    def some_test(self, most: int) -> Data:
        return self._some((task.test for task in self.stream.tasks), most)

    def _some(self, sources: Iterable[Source], most: int) -> Data:
        """At most `most` samples from all sources together, the same ones every time."""
        parts = [_all_rows(source) for source in sources]
        x, y = (torch.cat([part[i] for part in parts]) for i in (0, 1))
        chosen = torch.randperm(len(y), generator=seeded())[:most].sort().values
        return self.inputs(x[chosen]), y[chosen]


def open_finished_run(path: Path) -> FinishedRun:
    folder = RunFolder.open(path)
    folder.result()  # raises if the run has not finished
    memory = folder.state()["memory"]["data"]
    return FinishedRun(folder, load(path).classifier, build_stream(folder.config()), memory)


def _all_rows(source: Source) -> Data:
    rows = source.rows(torch.arange(len(source)))
    return rows["x"], rows["y"]


def seeded() -> torch.Generator:
    """A generator in the same state for every run."""
    return torch.Generator().manual_seed(0)
