"""The idea in one picture: rehearsal on a plane, with and without LiDER.

Each task brings two classes of points: interleaved crescents in a region of their own. A small
network learns the tasks one after the other, with a memory of very few points. The regions of past
classes then follow these few points in thin fingers; LiDER keeps the network's slope there small,
which smooths them. The picture shows the effect on boundaries and is not evidence of higher
accuracy (docs/analysis.md has the numbers over ten seeds).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import skip_init

from ..memory import Column, Memory
from ..memory.policies import Reservoir
from ..regularizers.lider import LiDER
from .analysis_result import AnalysisResult
from .scores import accuracy, scores

Points = tuple[Tensor, Tensor]
"""x: (n, 2), y: (n,)."""


@dataclass(frozen=True, eq=False)
class ToyBoundaries(AnalysisResult):
    """The network's predictions on the plane after each task.

    axis_x, axis_y: (g,) of the grid. regions: (tasks, g, g) the class predicted at each point, rows
    by y. probability: (tasks, g, g) of that class. accuracy: (tasks, tasks) percent on each task's
    held-out points (columns) after each task (rows), NaN before the task. memory_x: for every task,
    the (m, 2) points in memory; memory_y: their classes.
    """

    axis_x: np.ndarray
    axis_y: np.ndarray
    regions: np.ndarray
    probability: np.ndarray
    accuracy: np.ndarray
    memory_x: list[np.ndarray]
    memory_y: list[np.ndarray]

    @property
    def final_accuracy(self) -> float:
        """Mean over all tasks after the last one (FAA)."""
        return float(self.accuracy[-1].mean())


def toy_tasks(
    tasks: int = 3, per_class: int = 200, *, noise: float = 0.12, seed: int = 0
) -> list[Points]:
    """Tasks of two classes each: interleaved crescents, the tasks placed around a circle.

    >>> [(x.shape, sorted(set(y.tolist()))) for x, y in toy_tasks(2, per_class=5)]
    [(torch.Size([10, 2]), [0, 1]), (torch.Size([10, 2]), [2, 3])]
    """
    generator = torch.Generator().manual_seed(seed)
    made = []
    for task in range(tasks):
        angle = 2 * torch.pi * (task / tasks + 0.25) * torch.ones(())
        centre = 1.9 * torch.stack([angle.cos(), angle.sin()])
        arc = torch.pi * torch.rand(2, per_class, generator=generator)
        upper = torch.stack([arc[0].cos() - 0.5, arc[0].sin() - 0.25], 1)
        lower = torch.stack([0.5 - arc[1].cos(), 0.25 - arc[1].sin()], 1)
        x = torch.cat([upper, lower]) + centre
        x = x + noise * torch.randn(x.shape, generator=generator)
        made.append((x, torch.arange(2).repeat_interleave(per_class) + 2 * task))
    return made


def toy_boundaries(
    *,
    lider: bool,
    alpha: float = 0.1,
    beta: float = 0.5,
    estimator: Literal["batch", "jacobian"] = "jacobian",
    tasks: int = 3,
    memory_size: int = 24,
    steps: int = 300,
    lr: float = 0.1,
    noise: float = 0.2,
    grid: int = 121,
    seed: int = 0,
) -> ToyBoundaries:
    """Experience replay on `toy_tasks`, with or without LiDER; the same seed draws the same points.

    alpha, beta, estimator: LiDER's. memory_size: points in memory (a reservoir). steps: of plain
    SGD per task, on 32 points of the task and 32 of memory. noise: of the points; more noise makes
    the points in memory less typical. grid: points on each axis.
    """
    data, held_out = (toy_tasks(tasks, noise=noise, seed=s) for s in (seed, seed + 1000))
    generator = torch.Generator().manual_seed(seed)
    network = _network(2 * tasks, generator)
    memory = Memory(memory_size, (2,), {"x": Column(None, torch.float32)}, Reservoir())
    regularizer = LiDER(
        network,
        ["0", "2", "4"],
        alpha if lider else 0.0,
        beta if lider else 0.0,
        estimator=estimator,
        iterations=3,  # enough in two to fifty dimensions
    )
    if lider:
        regularizer.calibrate([data[0][0]])
    axis = np.linspace(-3.6, 3.6, grid)
    plane = torch.tensor(np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2), dtype=torch.float32)
    regions, probability, percent = [], [], np.full((tasks, tasks), np.nan)
    kept: list[Points] = []
    for task, (x, y) in enumerate(data):
        _learn(network, regularizer, memory, x, y, steps, lr, generator)
        best = scores(network, plane, range(2 * task + 2)).softmax(1).max(1)
        regions.append(best.indices.numpy().reshape(grid, grid))
        probability.append(best.values.numpy().reshape(grid, grid))
        for past, (test_x, test_y) in enumerate(held_out[: task + 1]):
            logits = scores(network, test_x)
            percent[task, past] = accuracy(logits[:, : 2 * task + 2], test_y)
        stored = memory.rows(torch.arange(len(memory)))
        kept.append((stored["x"].clone(), stored["y"].clone()))
    return ToyBoundaries(
        axis_x=axis,
        axis_y=axis,
        regions=np.stack(regions),
        probability=np.stack(probability),
        accuracy=percent,
        memory_x=[x.numpy() for x, _ in kept],
        memory_y=[y.numpy() for _, y in kept],
    )


def _network(classes: int, generator: torch.Generator, width: int = 50) -> nn.Sequential:
    """Two hidden layers, with weights drawn from the generator."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((2, width, width, classes)):
        layer = skip_init(nn.Linear, inputs, outputs)
        with torch.no_grad():
            layer.weight.normal_(0, (2 / inputs) ** 0.5, generator=generator)
            layer.bias.zero_()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _learn(
    network: nn.Sequential,
    lider: LiDER,
    memory: Memory,
    x: Tensor,
    y: Tensor,
    steps: int,
    lr: float,
    generator: torch.Generator,
) -> None:
    """Train on one task, with a replay batch in every step; then offer its points to the memory."""
    groups = [{"params": network.parameters()}, *lider.param_groups()]
    optimizer = torch.optim.SGD(groups, lr=lr)
    for _ in range(steps):
        rows = torch.randint(len(x), (32,), generator=generator)
        loss = F.cross_entropy(network(x[rows]), y[rows])
        if len(memory):
            replayed = memory.rows(memory.draw(32, generator))
            if lider.active:
                with lider.watch():
                    logits = network(replayed["x"])
                loss = loss + lider.penalty()
            else:
                logits = network(replayed["x"])
            loss = loss + F.cross_entropy(logits, replayed["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    order = torch.randperm(len(x), generator=generator)
    memory.offer(generator, x=x[order], y=y[order], task=torch.full((len(x),), int(y[0]) // 2))
