"""Budgets: the shares of tasks, the counts of steps and passes, and the schedule within a share."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

from liderlab.distributed.team import Team
from liderlab.errors import UserError
from liderlab.training.budget import Budget, Share
from liderlab.training.cost import Cost
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop
from liderlab.training.schedules import make_schedule
from liderlab.types import Recipe, Task

Build = Callable[..., Loop]
Differences = Callable[..., list[str]]


def steps_by_task(loop: Loop) -> list[int]:
    counts = [0] * len(loop.stream.tasks)
    for event in loop:
        if isinstance(event, StepDone):
            counts[event.task.index] += 1
    return counts


def unequal() -> list[Task]:
    images = [torch.zeros(n) for n in (10, 20, 30)]
    return [Task(index, range(2), data, data) for index, data in enumerate(images)]  # type: ignore[arg-type]


def test_shares_follow_the_images_and_add_up() -> None:
    budget, tasks = Budget("passes", 600), unequal()
    shares = [budget.share(tasks, lambda task: ["fit"], t, 0, 1) for t in range(3)]
    assert [(s.begin, s.end) for s in shares] == [(0, 100), (100, 300), (300, 600)]
    halves = [budget.share(tasks, lambda task: ["fit"] * 2, 1, fit, 2) for fit in (0, 1)]
    assert [(s.begin, s.end) for s in halves] == [(100, 200), (200, 300)]


def test_a_task_without_training_leaves_its_share() -> None:
    share = Budget("steps", 600).share(unequal(), lambda task: ["fit"] * (task.index == 2), 2, 0, 1)
    assert (share.begin, share.end, share.unit) == (0, 600, "steps")


def test_the_schedule_stays_within_its_epochs() -> None:
    share = Share(10, 20)
    assert [share.epoch(spent, 4) for spent in (9, 10, 15, 20, 23)] == [0, 0, 2, 4, 4]


@pytest.mark.parametrize("amount", [3, 10, 18, 40])
def test_a_budget_of_steps_is_spent_exactly(build: Build, amount: int) -> None:
    loop = build("er", epochs=2, budget=Budget("steps", amount))  # 18 steps without it
    assert loop.planned_steps() == amount
    counts = steps_by_task(loop)
    assert sum(counts) == loop.steps == amount
    assert max(counts) - min(counts) <= 1


def test_joint_has_the_whole_budget_at_the_end(build: Build) -> None:
    assert steps_by_task(build("joint", budget=Budget("steps", 21))) == [0, 0, 21]


def test_the_budget_of_the_usual_steps_is_the_usual_run(
    build: Build, differences: Differences
) -> None:
    recipe = Recipe(
        lr=0.1, batch_size=8, schedule=make_schedule("cosine", {"by": "step"}, 2, [], 0.1)
    )
    usual, budgeted = (
        build("er", recipe=recipe),
        build("er", recipe=recipe, budget=Budget("steps", 18)),
    )
    for loop in (usual, budgeted):
        for _ in loop:
            pass
    mine, other = budgeted.state_dict(), usual.state_dict()
    assert not differences(mine["network"], other["network"])


def test_the_schedule_runs_once_over_the_share(build: Build) -> None:
    recipe = Recipe(lr=1e-3, batch_size=8, schedule=make_schedule("multistep", {}, 2, [1], 0.1))
    loop = build("er", epochs=2, recipe=recipe, budget=Budget("steps", 30))
    rates = []
    losses = loop.method.losses

    def spied(batch, step):
        rates.append(step.lr)
        return losses(batch, step)

    loop.method.losses = spied  # type: ignore[method-assign]
    for _ in loop:
        pass
    assert rates == pytest.approx(3 * (5 * [1e-3] + 5 * [1e-4]))  # falls at half of 10 steps


@pytest.mark.parametrize(
    ("method", "passes"),
    [
        ("finetune", 3 * 2 * 24),
        ("er", 3 * 2 * 24 + 17 * 8),  # in the first step the memory is empty
        ("der++", 3 * 2 * 24 + 2 * 17 * 8),
        ("er-ace", 3 * 2 * 24 + 12 * 8),  # replays from the second task on
    ],
)
def test_passes_are_the_images_that_pass(build: Build, method: str, passes: int) -> None:
    loop = build(method, epochs=2)
    for _ in loop:
        pass
    assert loop.cost.passes == passes


def test_icarl_counts_its_earlier_network(build: Build) -> None:
    loop = build("icarl", epochs=1)
    for _ in loop:
        pass
    first, second, third = 24, 24 + 18, 24 + 16  # exemplars: 18 in all, then 4 of each class
    assert loop.cost.passes == first + 2 * second + 2 * third


def test_regularisers_with_passes_of_their_own_are_counted(build: Build) -> None:
    alone, fresh = build("er"), build("er", {"lider": {"draw": "fresh"}})
    for loop in (alone, fresh):
        for _ in loop:
            pass
    assert fresh.cost.passes > alone.cost.passes


def test_a_budget_of_passes_costs_every_method_the_same(build: Build) -> None:
    found = {}
    for method in ("finetune", "er", "der++"):
        loop = build(method, epochs=2, budget=Budget("passes", 600))
        found[method] = steps_by_task(loop)
        assert 600 <= loop.cost.passes < 600 + 3 * 8
    assert sum(found["finetune"]) > sum(found["er"]) > sum(found["der++"])


def test_a_budget_of_seconds_ends_the_run(build: Build) -> None:
    loop = build("er", epochs=10**6, budget=Budget("seconds", 0.6))
    began = time.monotonic()
    counts = steps_by_task(loop)
    assert min(counts) >= 1
    assert 0.6 <= loop.cost.seconds <= time.monotonic() - began


def test_seconds_are_not_rounded_up() -> None:
    assert Cost(seconds=0.5996).spent("seconds", Team()) == 0.599


@pytest.mark.parametrize("unit", ["steps", "passes"])
@pytest.mark.parametrize("events", [1, 4, 9, 14])
def test_a_resumed_run_spends_the_same(
    build: Build, differences: Differences, unit: str, events: int
) -> None:
    def make() -> Loop:
        return build("er-ace", {"lider": {}}, budget=Budget(unit, 11 if unit == "steps" else 150))

    whole, first, second = make(), make(), make()
    for _ in whole:
        pass
    for number, _ in enumerate(first, 1):
        if number == events:
            break
    second.load_state_dict(first.state_dict())
    for _ in second:
        pass
    assert not differences(second.state_dict(), whole.state_dict())


def test_a_budget_too_small_for_the_tasks_is_refused() -> None:
    with pytest.raises(UserError, match="2 passes is too small for 3 tasks"):
        Budget("passes", 2).check(3)
    Budget("seconds", 0.1).check(3)


def test_planned_steps_follow_the_cost_so_far(build: Build) -> None:
    loop = build("finetune", epochs=2, budget=Budget("passes", 800))
    assert loop.planned_steps() == 18  # by the epochs, before the first step
    next(iter(loop))
    assert loop.planned_steps() == 100
