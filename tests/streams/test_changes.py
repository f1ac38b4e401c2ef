"""Long tails, blurry tasks, wrong labels, task-free training: against counts made by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from liderlab.config.merging import make_config
from liderlab.config.migrations import migrate
from liderlab.errors import UserError
from liderlab.runs.build import build_stream, completed
from liderlab.runs.execute import run
from liderlab.streams.changes import blurred, long_tail, relabelled
from liderlab.streams.fingerprint import fingerprint
from liderlab.streams.splitting import Images, SplitStream, on_device, split
from liderlab.training.loop import Loop, TaskDone
from liderlab.training.step import Step
from liderlab.types import Batch, Source, Terms

CLASSES, PER_CLASS = 6, 40
SMALL: dict[str, Any] = {
    "benchmark": {"name": "synthetic"},
    "method": "er",
    "backbone": {"name": "convnet-small", "width": 8},
    "training": {"epochs": 1},
    "threads": 1,
}


def numbered(order: list[int] | None = None, tasks: Any = 3) -> SplitStream:
    """Images that carry their number in two pixels and their class in a third."""
    y = torch.arange(CLASSES * PER_CLASS) % CLASSES
    x = torch.zeros(len(y), 1, 2, 2, dtype=torch.uint8)
    x[:, 0, 0, 0], x[:, 0, 0, 1] = torch.arange(len(y)) // 100, torch.arange(len(y)) % 100
    x[:, 0, 1, 0] = y
    images = Images(x, y)
    return split(images, images, tasks, order)


def contents(data: Source) -> list[tuple[int, int, int]]:
    """(number, true class, label) of every row."""
    rows = data.rows(torch.arange(len(data)))
    x = rows["x"][:, 0].long()
    number, true = 100 * x[:, 0, 0] + x[:, 0, 1], x[:, 1, 0]
    return list(zip(number.tolist(), true.tolist(), rows["y"].tolist(), strict=True))


def test_a_long_tail_follows_the_formula() -> None:
    order = [2, 0, 5, 1, 4, 3]
    stream = long_tail(numbered(order), 0.05, order, seed=1)
    rows = [row for task in stream.tasks for row in contents(task.train)]
    expected = {c: max(1, round(PER_CLASS * 0.05 ** (c / (CLASSES - 1)))) for c in range(CLASSES)}
    assert Counter(true for _, true, _ in rows) == expected
    assert (expected[0], expected[CLASSES - 1]) == (PER_CLASS, 2)
    assert len({number for number, *_ in rows}) == len(rows)
    assert all(order[label] == true for _, true, label in rows)
    assert [contents(t.test) for t in stream.tasks] == [
        contents(t.test) for t in numbered(order).tasks
    ]


@pytest.mark.parametrize("tasks", [3, [4, 1, 1], 2])
def test_blurry_tasks_exchange_a_share_of_every_class(tasks: Any) -> None:
    plain, share = numbered(tasks=tasks), 0.3
    stream = blurred(plain, share, seed=1)
    every = sorted(row for task in stream.tasks for row in contents(task.train))
    assert every == sorted(row for task in plain.tasks for row in contents(task.train))
    moved = round(share * PER_CLASS)
    for task in stream.tasks:
        counts = Counter(label for *_, label in contents(task.train))
        others = len(stream.tasks) - 1
        for c in range(CLASSES):
            if c in task.classes:
                assert counts[c] == PER_CLASS - moved
            else:
                assert moved // others <= counts[c] <= -(-moved // others)
        assert [*task.also] == sorted(set(counts) - set(task.classes))
        assert contents(task.test) == contents(plain.tasks[task.index].test)


def test_wrong_labels_stay_in_their_task() -> None:
    plain = numbered(tasks=[4, 1, 1])
    stream = relabelled(plain, 0.4, seed=1)
    wrong = 0
    for task, before in zip(stream.tasks, plain.tasks, strict=True):
        assert [row[:2] for row in contents(task.train)] == [
            row[:2] for row in contents(before.train)
        ]
        for _, true, label in contents(task.train):
            assert label in task.classes
            wrong += label != true
        assert contents(task.test) == contents(before.test)
    assert abs(wrong / (4 * PER_CLASS) - 0.4) < 4 * (0.24 / (4 * PER_CLASS)) ** 0.5


def test_labels_of_blurry_tasks_stay_among_the_classes_of_their_own_task() -> None:
    stream = relabelled(blurred(numbered(), 0.3, seed=0), 0.5, seed=0)
    pairs = {(true // 2, label // 2) for t in stream.tasks for _, true, label in contents(t.train)}
    assert pairs == {(0, 0), (1, 1), (2, 2)}


def test_each_domain_has_wrong_labels_of_its_own(stream_of_kind: Callable[..., Any]) -> None:
    stream = relabelled(stream_of_kind("domains"), 0.5, seed=0)
    first, second, _ = (
        task.train.rows(torch.arange(len(task.train)))["y"] for task in stream.tasks
    )
    assert not torch.equal(first, second)
    moved = on_device(stream, torch.device("cpu"))
    assert fingerprint(moved) == fingerprint(stream)
    assert moved.tasks[0].train.images.x is moved.tasks[1].train.images.x


@pytest.mark.parametrize("field", [{"imbalance": 0.2}, {"blurry": 0.3}, {"noise": 0.3}])
def test_the_seed_decides_and_the_fingerprint_records(field: dict[str, Any]) -> None:
    def print_of(seed: int, **more: Any) -> str:
        config = make_config(SMALL, {"seed": seed, "benchmark": {**field, **more}})
        return fingerprint(build_stream(completed(config)))

    plain = fingerprint(build_stream(completed(make_config(SMALL))))
    assert print_of(0) == print_of(0)
    assert len({plain, print_of(0), print_of(1), print_of(0, tasks=2)}) == 4


def test_which_images_were_drawn_is_part_of_the_fingerprint() -> None:
    one, other = (long_tail(numbered(), 0.5, range(CLASSES), seed) for seed in (0, 1))
    sizes = [[len(task.train) for task in stream.tasks] for stream in (one, other)]
    assert sizes[0] == sizes[1]
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"benchmark": {"blurry": 0.1, "tasks": 1}}, "there is only one: --tasks 2 or more"),
        (
            {"benchmark": {"blurry": 0.1}, "method": "icarl"},
            "icarl needs tasks of new classes only",
        ),
        ({"benchmark": {"blurry": 0.1}, "method": "x-der-rpc"}, "x-der-rpc needs tasks of new"),
        ({"benchmark": {"blurry": 1.0}}, "benchmark.blurry"),
        ({"benchmark": {"imbalance": 0}}, "benchmark.imbalance"),
        ({"benchmark": {"imbalance": 2}}, "benchmark.imbalance"),
        ({"benchmark": {"noise": -0.1}}, "benchmark.noise"),
        ({"benchmark": {"noise": 40.0}}, "benchmark.noise"),
        (
            {"benchmark": {"name": "rotated-digits", "blurry": 0.1}},
            "here every task has all classes",
        ),
        ({"benchmark": {"task_free": True}, "method": "icarl"}, "icarl needs to know where a task"),
        ({"benchmark": {"task_free": True}, "method": "gdumb"}, "gdumb needs to know where a task"),
        ({"benchmark": {"task_free": True}, "regularizers": {"oewc": {}}}, "oewc needs to know"),
        (
            {"benchmark": {"task_free": True}, "regularizers": {"lider": {"rows": "past"}}},
            "lider needs to know where a task begins or ends: leave out --task-free, or rows: past",
        ),
        ({"benchmark": {"task_free": True}, "training": {"epochs": 2}}, "--epochs 1, not 2"),
        (
            {"benchmark": {"task_free": True}, "training": {"heads": "seen"}},
            "needs task boundaries",
        ),
        (
            {"benchmark": {"task_free": True}, "training": {"schedule": "cosine"}},
            "leave out training.schedule",
        ),
    ],
)
def test_bad_input(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as error:
        run(make_config(SMALL, fields), tmp_path / "x")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "x").exists()


def test_synthetics_older_option_of_that_name_is_migrated() -> None:
    old = {"schema": 2, "benchmark": {"name": "synthetic", "noise": 30.0}}
    assert migrate(old)["benchmark"]["pixel_noise"] == 30.0
    assert migrate(old)["benchmark"]["noise"] == 0.0


def test_the_command_line(lider: Any) -> None:
    small = ("run", "--benchmark", "synthetic", "--width", "8", "--epochs", "1", "--out")
    code, _, err = lider(*small, "x", "--blurry", "0.2", "--imbalance", "0.5", "--task-free")
    assert code == 0, err
    code, out, _ = lider("run", "--help")
    assert code == 0
    assert all(option in out for option in ("--blurry", "--imbalance", "--task-free", "--base"))


def test_er_ace_keeps_its_own_record_of_classes(
    build: Callable[..., Loop], stream_of_kind: Callable[[str], SplitStream]
) -> None:
    """The stream loss leaves out the classes that batches before have shown, unless this one has
    them, and no other; the method is never told that a task begins or ends."""
    loop = build("er-ace", stream=stream_of_kind("blurry"), epochs=1, task_free=True)
    losses, shown, told = loop.method.losses, [set[int]()], []

    def watched(batch: Batch, step: Step) -> Terms:
        with torch.no_grad():
            logits = step.probe(batch.x)
        expected = []
        for row, y in zip(logits.double(), batch.y.tolist(), strict=True):
            kept = [c for c in range(6) if c not in shown[-1] or c in batch.y.tolist()]
            expected.append(row[kept].logsumexp(0) - row[y])
        terms = losses(batch, step)
        torch.testing.assert_close(terms["stream"].double(), torch.stack(expected))
        assert ("replay" in terms) == (len(shown) > 1)
        shown.append(shown[-1] | set(batch.y.tolist()))
        return terms

    loop.method.losses = watched  # type: ignore[method-assign]
    for hook in ("begin_task", "end_task"):
        setattr(loop.method, hook, told.append)
    assert [event.task.index for event in loop if isinstance(event, TaskDone)] == [0, 1, 2]
    assert shown[-1] == set(range(6))
    assert not told


def test_task_free_training_keeps_one_optimizer(build: Callable[..., Loop]) -> None:
    """The momentum of the first stretch enters the first step of the second, as it does with
    `optimizer_per_task=False`."""
    free, kept, anew = (
        build("er", epochs=1, **how)
        for how in ({"task_free": True}, {"optimizer_per_task": False}, {})
    )
    for loop in (free, kept, anew):
        for _ in loop:
            pass
    weights = [loop.network.state_dict() for loop in (free, kept, anew)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not all(torch.equal(weights[0][name], weights[2][name]) for name in weights[0])
