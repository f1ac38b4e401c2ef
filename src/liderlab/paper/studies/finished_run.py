"""What an analysis needs of a finished run: its network, its memory, its data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

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

    def raw(self, source: Source) -> Data:
        """All of a task's images, as stored."""
        rows = source.rows(torch.arange(len(source)))
        return rows["x"], rows["y"]

    def some(self, sources: Iterable[Source], most: int) -> Data:
        """At most so many samples of these sources together, the same ones every time."""
        parts = [self.raw(source) for source in sources]
        x, y = (torch.cat([part[i] for part in parts]) for i in (0, 1))
        chosen = torch.randperm(len(y), generator=seeded())[:most].sort().values
        return self.inputs(x[chosen]), y[chosen]

    def some_training(self, most: int) -> Data:
        return self.some([task.train for task in self.stream.tasks], most)

    def some_test(self, most: int) -> Data:
        return self.some([task.test for task in self.stream.tasks], most)


def open_finished_run(path: Path) -> FinishedRun:
    folder = RunFolder.open(path)
    folder.result()  # says so if the run has not finished
    memory = folder.state()["memory"]["data"]
    return FinishedRun(folder, load(path).classifier, build_stream(folder.config()), memory)


def seeded(seed: int = 0) -> torch.Generator:
    """Every run meets the same draws."""
    return torch.Generator().manual_seed(seed)
