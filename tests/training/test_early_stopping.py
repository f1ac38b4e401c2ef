"""Early stopping: when it ends a fit, the weights it goes back to, and resuming."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from liderlab.streams.splitting import SplitStream
from liderlab.streams.subsets import hold_back
from liderlab.training.early_stopping import EarlyStopping
from liderlab.training.evaluation import accuracy, score
from liderlab.training.events import StepDone, TaskDone
from liderlab.training.loop import Loop

Build = Callable[..., Loop]
Differences = Callable[..., list[str]]


@pytest.fixture
def held(stream: SplitStream) -> SplitStream:
    return hold_back(stream, 0.25)


def test_validation_images_leave_the_training_images(
    stream: SplitStream, held: SplitStream
) -> None:
    for before, task in zip(stream.tasks, held.tasks, strict=True):
        assert task.validation is not None
        parts = [task.train, task.validation]
        assert [len(part) for part in parts] == [18, 6]
        images = [
            {bytes(x.numpy()) for x in part.rows(torch.arange(len(part)))["x"]} for part in parts
        ]
        assert not images[0] & images[1]
        whole = before.train.rows(torch.arange(24))
        assert images[0] | images[1] == {bytes(x.numpy()) for x in whole["x"]}
        assert torch.bincount(task.validation.rows(torch.arange(6))["y"])[-2:].tolist() == [3, 3]
        assert len(task.test) == len(before.test)


@pytest.mark.parametrize(
    ("accuracies", "patience", "epochs", "best"),
    [
        ([50, 60, 55, 58, 59], 3, 5, 2),
        ([50, 50, 50], 2, 3, 1),  # the same again is no improvement
        ([10, 20, 15, 30, 29, 31, 30], 2, 7, 6),
    ],
)
def test_it_stops_after_its_patience(
    held: SplitStream, accuracies: list[float], patience: int, epochs: int, best: int
) -> None:
    """With weights that number the epochs; the last module stands for a regulariser."""
    network, other = nn.BatchNorm1d(1), nn.Linear(1, 1)
    stopping = EarlyStopping(patience, held)
    stopping.begin(0)
    trained = 0
    for value in accuracies:
        trained += 1
        for tensor in (network.weight, network.running_mean, other.weight):
            tensor.data.fill_(trained)
        if stopping.stops(value, network, [other]):
            break
    assert trained == epochs
    stopping.restore(network, [other])
    restored = (network.weight, network.running_mean, other.weight)
    assert [tensor.item() for tensor in restored] == [best] * 3
    fit = {"task": 0, "epochs": epochs, "best": best, "accuracy": max(accuracies[:epochs])}
    assert stopping.fits == [fit]


def build_stopping(build: Build, held: SplitStream, method: str = "er-ace", **how: Any) -> Loop:
    make = partial(build, stream=held, epochs=8, stopping=EarlyStopping(2, held))
    return make(method, {"lider": {}} if method == "er-ace" else {}, **how)


@pytest.mark.parametrize("method", ["er-ace", "icarl"])
def test_a_run_goes_back_to_its_best_epoch(build: Build, held: SplitStream, method: str) -> None:
    """Against the validation accuracy measured by hand after every epoch."""
    loop = build_stopping(build, held, method)
    assert loop.stopping is not None
    reached: list[float] = []
    kept: list[dict[str, torch.Tensor]] = []
    for event in loop:
        task = event.task
        if isinstance(event, StepDone) and event.batch == event.batches - 1:
            scores, y = score(loop.network, held, task.validation)
            reached.append(accuracy(scores, y, range(task.classes[-1] + 1)))
            state = loop.network.state_dict()
            kept.append({name: value.clone() for name, value in state.items()})
        if isinstance(event, TaskDone):
            best = reached.index(max(reached))
            fit = {"epochs": len(reached), "best": best + 1, "accuracy": max(reached)}
            assert loop.stopping.fits[-1] == {"task": task.index, **fit}
            assert len(reached) == min(8, best + 1 + 2)
            for name, value in loop.network.state_dict().items():
                assert torch.equal(value, kept[best][name])
            reached, kept = [], []
    assert len(loop.stopping.fits) == 3


def test_joint_stops_by_the_images_of_all_tasks(build: Build, held: SplitStream) -> None:
    loop = build("joint", stream=held, epochs=3, stopping=EarlyStopping(5, held))
    reached: list[float] = []
    for event in loop:
        if isinstance(event, StepDone) and event.batch == event.batches - 1:
            right = 0.0
            for task in held.tasks:
                scores, y = score(loop.network, held, task.validation)
                right += accuracy(scores, y, range(6)) / 3
            reached.append(right)
    assert loop.stopping is not None
    best = max(reached)
    assert loop.stopping.fits == [
        {
            "task": 2,
            "epochs": 3,
            "best": loop.stopping.fits[0]["best"],
            "accuracy": pytest.approx(best),
        }
    ]


@pytest.mark.parametrize("events", [1, 5, 6, 7, 13, 20, 30])
def test_it_resumes_to_the_bit(
    build: Build, held: SplitStream, differences: Differences, events: int
) -> None:
    whole, first = build_stopping(build, held), build_stopping(build, held)
    for _ in whole:
        pass
    for number, _ in enumerate(first, 1):
        if number == events:
            break
    second = build_stopping(build, held)
    second.load_state_dict(first.state_dict())
    for _ in second:
        pass
    assert not differences(second.state_dict(), whole.state_dict())
