"""The loop: the order of events, and the rows of each batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from liderlab.backbones.network import Network
from liderlab.methods import METHODS
from liderlab.methods.er import ER
from liderlab.registry import Entry
from liderlab.regularizers import REGULARIZERS
from liderlab.regularizers.base import Regularizer
from liderlab.streams.splitting import SplitStream
from liderlab.training.evaluation import Evaluation
from liderlab.training.events import Cursor, StepDone, TaskDone
from liderlab.training.loop import Loop
from liderlab.training.step import Step
from liderlab.types import Batch, Recipe, Task, Terms
from short_options import SMALL

Build = Callable[..., Loop]


def spy(loop: Loop, after: Callable[[Batch, Step], None]) -> None:
    """Call `after` behind every call of the method's losses."""
    losses = loop.method.losses

    def spied(batch: Batch, step: Step) -> Terms:
        terms = losses(batch, step)
        after(batch, step)
        return terms

    loop.method.losses = spied  # type: ignore[method-assign]


def images_of(loop: Loop) -> list[list[set[bytes]]]:
    """The raw images of every batch, epoch by epoch, as the loop runs."""
    epochs: list[list[set[bytes]]] = []
    batches: list[set[bytes]] = []
    spy(loop, lambda batch, step: batches.append({bytes(x.numpy()) for x in batch.raw}))
    for event in loop:
        if isinstance(event, StepDone) and event.batch == event.batches - 1:
            epochs.append(batches[:])
            batches.clear()
    return epochs


def test_events_come_in_order(build: Build) -> None:
    seen = []
    for event in build("finetune", epochs=2):
        if isinstance(event, StepDone):
            assert (event.batches, event.fits, event.fit.name) == (3, 1, "train")
            seen.append((event.task.index, event.epoch, event.batch))
        else:
            seen.append((event.task.index, "done"))
    expected = []
    for task in range(3):
        expected += [(task, epoch, batch) for epoch in range(2) for batch in range(3)]
        expected.append((task, "done"))
    assert seen == expected


def test_the_cursor_is_the_next_batch(build: Build) -> None:
    loop = build("finetune", epochs=2)
    assert loop.cursor == Cursor()
    events = iter(loop)
    for expected in (Cursor(batch=1), Cursor(batch=2), Cursor(batch=3), Cursor(epoch=1, batch=1)):
        next(events)
        assert loop.cursor == expected
    for event in events:
        if isinstance(event, TaskDone):
            break
    assert loop.cursor == Cursor(task=1)
    assert loop.steps == 6


def test_an_epoch_is_the_tasks_data_in_an_order_of_its_own(
    build: Build, stream: SplitStream
) -> None:
    epochs = images_of(build("finetune", epochs=2))
    for task in stream.tasks:
        data = {bytes(x.numpy()) for x in task.train.rows(torch.arange(24))["x"]}
        for epoch in epochs[2 * task.index : 2 * task.index + 2]:
            assert [len(batch) for batch in epoch] == [8, 8, 8]
            assert set.union(*epoch) == data
    assert all(a != b for a, b in pairwise(epochs))


def test_the_order_depends_on_the_seed_alone(build: Build) -> None:
    assert images_of(build("finetune", seed=1)) == images_of(build("er", {"lider": {}}, seed=1))
    assert images_of(build("finetune", seed=1)) != images_of(build("finetune", seed=2))


@pytest.mark.parametrize(
    ("batch_size", "sizes"),
    [(23, [24]), (8, [8, 8, 8]), (22, [22, 2]), (24, [24]), (30, [24]), (1, [1] * 24)],
)
def test_a_single_last_row_joins_the_batch_before(
    build: Build, batch_size: int, sizes: list[int]
) -> None:
    loop = build("finetune", backbone="mlp", recipe=Recipe(lr=0.1, batch_size=batch_size), epochs=1)
    assert loop.planned_steps() == 3 * len(sizes)
    assert [[len(batch) for batch in epoch] for epoch in images_of(loop)] == [sizes] * 3


@pytest.mark.parametrize(
    ("batch_size", "sizes"), [(7, [7, 7, 7]), (8, [8, 8, 8]), (23, [23]), (24, [24]), (32, [24])]
)
def test_a_short_last_batch_is_dropped_unless_it_is_the_only_one(
    build: Build, batch_size: int, sizes: list[int]
) -> None:
    recipe = Recipe(lr=0.1, batch_size=batch_size, drop_last=True)
    loop = build("finetune", recipe=recipe, epochs=1)
    assert loop.planned_steps() == 3 * len(sizes)
    assert [[len(batch) for batch in epoch] for epoch in images_of(loop)] == [sizes] * 3


def test_joint_trains_on_everything_at_the_end(build: Build, stream: SplitStream) -> None:
    loop = build("joint", epochs=2)
    assert loop.planned_steps() == 18
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    events = iter(loop)
    for index in (0, 1):
        event = next(events)
        assert isinstance(event, TaskDone)
        assert event.task.index == index
    assert all(torch.equal(before[n], v) for n, v in loop.network.state_dict().items())
    everything = {
        bytes(x.numpy()) for t in stream.tasks for x in t.train.rows(torch.arange(24))["x"]
    }
    epochs = images_of(loop)
    assert [set.union(*epoch) for epoch in epochs] == [everything] * 2
    summary = loop.evaluation.summary()["class_incremental"]
    assert summary["ff"] is None
    assert summary["accuracy_matrix"][:2] == [[None] * 3] * 2  # type: ignore[index]
    assert isinstance(summary["faa"], float)


@pytest.mark.parametrize(("offer", "seen"), [("every-epoch", 3 * 24 * 3), ("once", 3 * 24)])
def test_samples_are_offered_in_every_epoch_or_once(build: Build, offer: str, seen: int) -> None:
    loop = build("er", epochs=3, offer=offer)
    for _ in loop:
        pass
    assert loop.memory.seen == seen


def test_the_memory_takes_samples_as_they_are_stored_once_the_step_is_done(
    build: Build, stream: SplitStream
) -> None:
    loop = build("er", epochs=1, size=500)
    offered = 0

    def not_before_the_step(batch: Batch, step: Step) -> None:
        assert step.memory.seen == offered

    spy(loop, not_before_the_step)
    for event in loop:
        offered += 8 if isinstance(event, StepDone) else 0
        assert loop.memory.seen == len(loop.memory) == offered
    data = {
        bytes(x.numpy()): (int(y), int(t))
        for task in stream.tasks
        for rows in [task.train.rows(torch.arange(24))]
        for x, y, t in zip(rows["x"], rows["y"], rows["task"], strict=True)
    }
    stored = loop.memory.rows(torch.arange(72))
    found = {
        bytes(x.numpy()): (int(y), int(t))
        for x, y, t in zip(stored["x"], stored["y"], stored["task"], strict=True)
    }
    assert found == data


def test_a_fit_that_restarts_begins_with_the_initial_weights(build: Build) -> None:
    loop = build("gdumb", options={"fit_epochs": 2, "fit_after": "task"})
    initial = [p.detach().clone() for p in loop.network.parameters()]
    begun: set[int] = set()

    def look(batch: Batch, step: Step) -> None:
        if step.fit.restart and step.task.index not in begun:
            begun.add(step.task.index)
            parameters = loop.network.parameters()
            assert all(torch.equal(a, b) for a, b in zip(initial, parameters, strict=True))

    spy(loop, look)
    for _ in loop:
        pass
    assert begun == {0, 1, 2}
    assert not any(map(torch.equal, initial, loop.network.parameters()))


def test_a_loop_can_be_left_and_iterated_again(
    build: Build, differences: Callable[..., list[str]]
) -> None:
    whole, parts = build("er"), build("er")
    steps = sum(isinstance(event, StepDone) for event in whole)
    done = 0
    while done < steps:
        for event in parts:
            done += isinstance(event, StepDone)
            if done % 4 == 0:
                break
    for _ in parts:
        pass
    assert not differences(parts.state_dict(), whole.state_dict())
    assert list(parts) == []


def test_two_loops_from_one_state_do_not_disturb_each_other(
    build: Build, differences: Callable[..., list[str]]
) -> None:
    first, second, whole = build("er"), build("er"), build("er")
    for _ in zip(range(4), first, strict=False):
        pass
    second.load_state_dict(first.state_dict())
    for _ in zip(first, second, strict=False):  # in turns
        pass
    for loop in (first, second, whole):
        for _ in loop:
            pass
    assert not differences(first.state_dict(), whole.state_dict())
    assert not differences(second.state_dict(), whole.state_dict())


class Witness(Regularizer):
    """Records its calls, and adds a term without gradient."""

    def __init__(self, name: str, notes: list[str]) -> None:
        super().__init__()
        self.name, self.notes = name, notes

    def adapt(self, recipe: Recipe, task: Task) -> Recipe:
        return recipe

    def start(self, step: Step) -> None:
        self.notes.append(f"{self.name} start {step.task.index}")

    def hear(self, batch: Batch, step: Step) -> AbstractContextManager[Any]:
        @contextmanager
        def listening() -> Iterator[None]:
            rows = "memory" if batch.replayed.all() else "stream"
            self.notes.append(f"{self.name} hears {rows}")
            yield
            self.notes.append(f"{self.name} heard {rows}")

        return listening()

    def losses(self, step: Step) -> Terms:
        self.notes.append(f"{self.name} losses")
        return {self.name: torch.zeros(())}

    def end_task(self, step: Step) -> None:
        self.notes.append(f"{self.name} end {step.task.index}")


def test_regularizers_are_called_in_turn_and_watch_every_pass(build: Build) -> None:
    loop = build("er", epochs=1, recipe=Recipe(lr=0.1, batch_size=12))
    notes: list[str] = []
    loop.regularizers += [Witness("a", notes), Witness("b", notes)]
    events = iter(loop)
    first = next(events)
    assert isinstance(first, StepDone)
    assert list(first.terms) == ["stream", "a", "b"]
    around_stream = ["a hears stream", "b hears stream", "b heard stream", "a heard stream"]
    assert notes == ["a start 0", "b start 0", *around_stream, "a losses", "b losses"]
    notes.clear()
    second = next(events)
    assert isinstance(second, StepDone)
    assert list(second.terms) == ["stream", "replay", "a", "b"]
    around_memory = [note.replace("stream", "memory") for note in around_stream]
    assert notes == [*around_stream, *around_memory, "a losses", "b losses"]
    notes.clear()
    next(events)
    assert notes == ["a end 0", "b end 0"]


class FrozenER(ER):
    """Trains the last layer alone."""

    def attach(self, network: Network, example: Tensor) -> None:
        network.requires_grad_(False)
        network.backbone.fc.requires_grad_(True)


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_regularizers_meet_the_network_as_the_method_leaves_it(
    regularizer: str, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "frozen-er", Entry(FrozenER, "ER on a frozen backbone"))
    loop = build("frozen-er", {regularizer: SMALL.get(regularizer, {})}, epochs=1)
    before = {name: p.detach().clone() for name, p in loop.network.named_parameters()}
    terms = [event.terms for event in loop if isinstance(event, StepDone)]
    assert all(value.isfinite() for step in terms for value in step.values())
    moved = {n for n, p in loop.network.named_parameters() if not torch.equal(p, before[n])}
    assert moved == {name for name in before if ".fc." in name}


def test_without_terms_of_the_method_nothing_is_trained_or_evaluated(build: Build) -> None:
    loop = build("finetune", epochs=1)
    notes: list[str] = []
    loop.regularizers.append(Witness("a", notes))
    loop.method.losses = lambda batch, step: {}  # type: ignore[method-assign]
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    for event in loop:
        assert not isinstance(event, StepDone) or event.terms == {}
    assert "a losses" not in notes
    assert all(torch.equal(before[n], v) for n, v in loop.network.state_dict().items())
    assert loop.evaluation.class_incremental.isnan().all()


def test_the_schedule_follows_the_epoch(build: Build) -> None:
    asked = []

    def schedule(epoch: float) -> float:
        asked.append(round(epoch, 6))
        return 0.0 if epoch >= 1 else 1.0

    loop = build("finetune", epochs=2, recipe=Recipe(lr=0.1, batch_size=8, schedule=schedule))
    weights: list[Tensor] = []
    for event in loop:
        if isinstance(event, TaskDone):
            break
        weights.append(torch.cat([p.detach().flatten() for p in loop.network.parameters()]))
    expected = [0, 1 / 3, 2 / 3, 1, 4 / 3, 5 / 3]
    assert {round(epoch, 6) for epoch in expected} <= set(asked)
    moved = [not torch.equal(a, b) for a, b in pairwise(weights)]
    assert moved == [True, True, False, False, False]


def test_a_run_starts_by_training_and_measures_the_untrained_network_later(build: Build) -> None:
    loop, untouched = build("finetune"), build("finetune")
    expected = Evaluation(3)
    expected.before_training(untouched.network, untouched.stream)
    events = iter(loop)
    next(events)
    assert loop.evaluation.untrained.isnan().all()  # nothing was evaluated before the first step
    for event in events:
        if isinstance(event, TaskDone):
            known = min(event.task.index + 2, 3)  # tasks that FWT needs so far
            assert torch.equal(loop.evaluation.untrained[:known], expected.untrained[:known])
            assert loop.evaluation.untrained[known:].isnan().all()


def test_evaluation_can_leave_out_tasks_that_are_not_seen_yet(build: Build) -> None:
    every, seen = build("er"), build("er", evaluate="seen")
    for loop in (every, seen):
        for _ in loop:
            pass
    tasks = torch.ones(3, 3).tril().bool()
    for setting in ("class_incremental", "task_incremental", "on_memory"):
        full, part = (getattr(loop.evaluation, setting) for loop in (every, seen))
        assert torch.equal(part[tasks].nan_to_num(-1), full[tasks].nan_to_num(-1))
        assert part[~tasks].isnan().all()
    expected = every.evaluation.summary()["task_incremental"]
    found = seen.evaluation.summary()["task_incremental"]
    assert (found["fwt"], found["untrained"]) == (None, [None] * 3)
    assert [found[name] for name in ("faa", "ff", "aia")] == [
        expected[name] for name in ("faa", "ff", "aia")
    ]


def test_evaluation_can_wait_for_the_last_task(build: Build) -> None:
    every, last = build("er"), build("er", evaluate="last")
    for loop in (every, last):
        for _ in loop:
            pass
    for setting in ("class_incremental", "task_incremental"):
        full, final = (getattr(loop.evaluation, setting) for loop in (every, last))
        assert torch.equal(final[2], full[2])
        assert final[:2].isnan().all()
        assert not full[:2, 0].isnan().any()
        summary = last.evaluation.summary()[setting]
        missing = dict.fromkeys(("ff", "bwt", "fwt", "aia"))
        assert {name: summary[name] for name in missing} == missing  # not measured, not 0
        assert summary["faa"] == every.evaluation.summary()[setting]["faa"]
    assert all(seconds > 0 for seconds in every.evaluating)
    assert [seconds > 0 for seconds in last.evaluating] == [False, False, True]


@pytest.mark.parametrize("method", ["der++", "x-der-rpc", "gmed"])
def test_a_step_that_is_left_out_leaves_nothing_behind(method: str, build: Build) -> None:
    """Neither in the memory nor in BatchNorm's statistics."""
    loop = build(method, on_nonfinite="skip")
    wrong = 14  # in the second task, where all of them replay
    first = dict(loop.network.named_modules())["backbone.block1.0"]
    first.register_forward_hook(
        lambda module, x, y: y * torch.inf if loop.steps == wrong and module.training else None
    )
    before: dict[str, Tensor] = {}
    for event in loop:
        if isinstance(event, StepDone) and loop.steps == wrong:
            before = {name: value.clone() for name, value in loop.network.state_dict().items()}
        if isinstance(event, StepDone) and loop.steps == wrong + 1:
            after = loop.network.state_dict()
            assert all(torch.equal(after[name], value) for name, value in before.items())
    assert before
    assert loop.skipped == 1
    columns = (column[: len(loop.memory)] for column in loop.memory.data.values())
    assert all(column.isfinite().all() for column in columns)
