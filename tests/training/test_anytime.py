"""Accuracy during training: the moments, the images, and training that does not notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from liderlab.streams.splitting import SplitStream
from liderlab.training.anytime import Anytime
from liderlab.training.evaluation import accuracy, score
from liderlab.training.events import Measured, StepDone, TaskDone
from liderlab.training.loop import Loop

Build = Callable[..., Loop]
Differences = Callable[..., list[str]]


def build_measured(build: Build, stream: SplitStream, every: int, **how: Any) -> Loop:
    return build("er-ace", anytime=Anytime(stream, every, 6), **how)


def test_every_so_many_steps_and_at_the_end_of_each_task(build: Build, stream: SplitStream) -> None:
    loop = build_measured(build, stream, 4)  # a task has 6 steps
    seen = []
    for event in loop:
        if isinstance(event, Measured):
            seen.append((event.point["step"], event.point["task"]))
            assert loop.steps == event.point["step"]
        elif isinstance(event, TaskDone):
            assert event.point is not None
            seen.append((event.point["step"], event.point["task"]))
    assert seen == [(4, 0), (6, 0), (8, 1), (12, 1), (16, 2), (18, 2)]  # 12 is an end, once
    assert loop.anytime is not None
    assert [(p["step"], p["task"]) for p in loop.anytime.points] == seen


def test_accuracies_are_those_of_the_network_at_that_moment(
    build: Build, stream: SplitStream
) -> None:
    loop = build_measured(build, stream, 1)
    assert loop.anytime is not None
    parts = loop.anytime._parts
    assert [len(part) for part in parts] == [6, 6, 6]
    for event in loop:
        if isinstance(event, StepDone):
            continue
        point = event.point
        assert point is not None
        for task in stream.tasks[: event.task.index + 1]:
            scores, y = score(loop.network, stream, task.test, parts[task.index])
            seen = accuracy(scores, y, range(event.task.classes.stop))
            assert point["class_incremental"][task.index] == seen
            assert point["task_incremental"][task.index] == accuracy(scores, y, task.classes)
        assert len(point["class_incremental"]) == event.task.index + 1


def test_the_images_are_the_same_in_every_run_and_no_more_than_there_are(
    stream: SplitStream,
) -> None:
    one, other = (Anytime(stream, every, 6)._parts for every in (1, 9))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert not torch.equal(one[0], one[1])
    assert torch.equal(Anytime(stream, 1, 500)._parts[0], torch.arange(16))


@pytest.mark.parametrize("method", ["er-ace", "der++", "icarl", "x-der-rpc"])
def test_training_does_not_notice(
    build: Build, stream: SplitStream, differences: Differences, method: str
) -> None:
    plain, measured = build(method), build(method, anytime=Anytime(stream, 1, 6))
    for loop in (plain, measured):
        for _ in loop:
            pass
    state = measured.state_dict()
    assert len(state.pop("anytime")["points"]) == measured.steps
    assert not differences(plain.state_dict(), state)


@pytest.mark.parametrize("events", range(2, 22, 3))
def test_a_resumed_run_has_the_same_points(
    build: Build, stream: SplitStream, differences: Differences, events: int
) -> None:
    whole = build_measured(build, stream, 4)
    expected = [event for event in whole if not isinstance(event, StepDone)]
    first = build_measured(build, stream, 4)
    seen = []
    for number, event in enumerate(first, 1):
        seen += [] if isinstance(event, StepDone) else [event]
        if number == events:
            break
    second = build_measured(build, stream, 4)
    second.load_state_dict(first.state_dict())
    seen += [event for event in second if not isinstance(event, StepDone)]
    assert not differences(second.state_dict(), whole.state_dict())
    assert [event.point for event in seen] == [event.point for event in expected]


def test_the_summary_has_both_settings(build: Build, stream: SplitStream) -> None:
    loop = build_measured(build, stream, 2)
    assert loop.anytime is not None
    assert loop.anytime.summary() == {}
    for _ in loop:
        pass
    summary = loop.anytime.summary()
    points = loop.anytime.points
    for setting in ("class_incremental", "task_incremental"):
        rows = [(point[setting], point["task"]) for point in points]
        lowest = [min(row[i] for row, t in rows if t > i) for i in (0, 1)]
        assert summary[setting]["min_acc"] == pytest.approx(sum(lowest) / 2)
        assert summary[setting]["wc_acc"] == pytest.approx((sum(lowest) + rows[-1][0][2]) / 3)
        anytime = [sum(row) / len(row) for row, _ in rows]
        assert summary[setting]["aaa"] == pytest.approx(sum(anytime) / len(anytime))
