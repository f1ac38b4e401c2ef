"""Workloads to time: single training steps, and computations at the end of a task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from torch import nn

from ..analysis.interleaved_timing import Action
from ..backbones.convnet import ConvNet
from ..config.merging import make_config
from ..functional.curvature import diagonal_fisher, kronecker_factors, kronecker_layers
from ..functional.sampling import herding_order
from ..report.terminal.run_progress import ProgressDisplay
from ..runs.build import Run, build, completed
from ..runs.execute import deterministic
from ..runs.result import metrics_line
from ..training.events import Cursor, StepDone

CLASSES = 4
LIDER_OPTIONS: dict[str, dict[str, Any] | None] = {
    "without": None,
    "spatial": {},
    "batch": {"estimator": "batch"},
    "jacobian": {"estimator": "jacobian"},
    "fresh": {"draw": "fresh"},
}


def prepared_run(
    backbone: str,
    width: int,
    side: int,
    *,
    batch: int = 64,
    memory: int = 500,
    regularizers: Mapping[str, dict[str, Any]] | None = None,
) -> Run:
    """A run of er-ace at the beginning of its second task, with a full memory."""
    benchmark = {"name": "synthetic", "tasks": 2, "classes": CLASSES, "side": side}
    options: dict[str, Any] = {
        "benchmark": {**benchmark, "per_class": max(128, 2 * batch)},
        "method": "er-ace",
        "backbone": {"name": backbone, "width": width},
        "memory": {"size": memory},
        "training": {"batch_size": batch, "epochs": 10**6, "lr": 0.001},
        "regularizers": dict(regularizers or {}),
    }
    work = build(completed(make_config(options)))
    past = work.stream.tasks[0].train
    rows = past.rows(torch.arange(len(past)))
    while len(work.loop.memory) < memory:
        work.loop.memory.offer(work.loop.generators("memory"), **rows)
    first = work.stream.tasks[0]
    for regularizer in work.loop.regularizers:  # some begin with what they keep of a task
        regularizer.end_task(work.loop._step(first, work.loop._plan(first)[0], 0))
    work.loop.cursor = Cursor(task=1)
    return work


def loop_step(work: Run) -> Action:
    """One step of the training loop: draw, augment, train, insert, log, show."""
    events, display = iter(work.loop), ProgressDisplay(Console(quiet=True))
    log: list[str] = []

    def step() -> None:
        with deterministic(True):
            event = next(events)
        assert isinstance(event, StepDone)
        if line := metrics_line(work, event):
            log[:] = [json.dumps(line, ensure_ascii=False)]
        display(work, event)

    return step


def bare_step(work: Run, batch: int = 64) -> Action:
    """The same forward and backward passes and SGD step, on tensors that are ready."""
    network = work.loop.network.train()
    x = torch.rand(2, batch, *work.stream.image_shape)
    y = torch.randint(CLASSES, (2, batch))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)

    def step() -> None:
        loss = F.cross_entropy(network(x[0]), y[0]) + F.cross_entropy(network(x[1]), y[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def curvature(rows: int = 64, side: int = 8) -> dict[str, Action]:
    """The Fisher diagonal of a small convnet, row by row and at once; oLAP's factors."""
    network: nn.Module = ConvNet(10, (1, side, side)).eval()
    parameters, layers = dict(network.named_parameters()), kronecker_layers(network)
    x, y = torch.rand(rows, 1, side, side), torch.randint(10, (rows,))

    def row_by_row() -> None:
        squares = {name: torch.zeros_like(value) for name, value in parameters.items()}
        for i in range(rows):
            loss = F.cross_entropy(network(x[i : i + 1]), y[i : i + 1])
            gradients = torch.autograd.grad(loss, list(parameters.values()))
            for square, gradient in zip(squares.values(), gradients, strict=True):
                square += gradient.square()

    def forward_backward() -> None:
        loss = F.cross_entropy(network(x), y)
        torch.autograd.grad(loss, list(parameters.values()))

    return {
        "row by row": row_by_row,
        "oewc": lambda: diagonal_fisher(network, parameters, x, y, 10),
        "olap": lambda: kronecker_factors(network, layers, x, y, 10),
        "forward+backward": forward_backward,
    }


def herding(rows: int = 500, width: int = 512, chosen: int = 20) -> dict[str, Action]:
    """iCaRL's choice of exemplars of one class, and as many plain products with its features."""
    features = torch.rand(rows, width)
    return {
        "herding": lambda: herding_order(features, chosen),
        "products": lambda: [features.double() @ features[0].double() for _ in range(chosen)],
    }
