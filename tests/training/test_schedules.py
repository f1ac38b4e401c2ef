"""Schedules by name, against their closed forms."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.runs.build import completed
from liderlab.training.loop import Loop
from liderlab.training.schedules import make_schedule
from liderlab.types import MultiStep, Recipe

EPOCHS = [0, 0.25, 0.5, 1, 1.75, 2, 3, 3.5, 4, 7.9, 8]


def factor(name: str, epoch: float, **options: Any) -> float:
    return make_schedule(name, options, 8, [3, 4], 0.1)(epoch)


@pytest.mark.parametrize("epoch", EPOCHS)
@pytest.mark.parametrize("by", ["epoch", "step"])
def test_without_warm_up(epoch: float, by: str) -> None:
    e = math.floor(epoch) if by == "epoch" else epoch
    assert factor("multistep", epoch, by=by) == MultiStep((3, 4), 0.1)(epoch)  # as without a name
    assert factor("constant", epoch, by=by) == 1.0
    for low in (0.0, 0.25):
        expected = low + (1 - low) * 0.5 * (1 + math.cos(math.pi * e / 8))
        found = factor("cosine", epoch, by=by, minimum=low)
        assert found == pytest.approx(expected, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("epoch", EPOCHS)
def test_with_warm_up(epoch: float) -> None:
    whole = math.floor(epoch)
    by_epoch = min(1, (whole + 1) / 3) if whole < 2 else 1
    by_step = min(1, epoch / 2)
    assert factor("constant", epoch, warmup=2) == pytest.approx(by_epoch)
    assert factor("constant", epoch, by="step", warmup=2) == pytest.approx(by_step)
    steps = MultiStep((3, 4), 0.1)(epoch)
    assert factor("multistep", epoch, by="step", warmup=2) == pytest.approx(by_step * steps)
    shape = 0.5 * (1 + math.cos(math.pi * max(0, epoch - 2) / 6))
    found = factor("cosine", epoch, by="step", warmup=2)
    assert found == pytest.approx(by_step * shape, abs=1e-15)


def test_warm_up_may_last_for_all_epochs() -> None:
    assert [factor("cosine", e, by="step", warmup=8) for e in (0, 4, 8)] == [0, 0.5, 1]


def test_torchs_cosine_is_ours_by_epoch() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8, eta_min=0.1)
    for epoch in range(8):
        found = factor("cosine", epoch, minimum=0.1)
        assert found == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()


def test_a_run_follows_its_schedule_from_the_start_in_every_task(
    build: Callable[..., Loop],
) -> None:
    schedule = make_schedule("cosine", {"by": "step", "warmup": 0.5}, 2, [], 1.0)
    recipe = replace(Recipe(lr=0.1, batch_size=8, replay_size=8), schedule=schedule)
    loop = build("er", recipe=recipe, epochs=2)
    rates: dict[int, list[float]] = {}
    for event in loop:
        if hasattr(event, "batch"):
            rate = loop.state_dict()["optimizer"]["param_groups"][0]["lr"]
            expected = 0.1 * schedule(event.epoch + event.batch / event.batches)
            assert rate == pytest.approx(expected)
            rates.setdefault(event.task.index, []).append(rate)
    assert rates[0] == rates[1]
    assert len(set(rates[0])) > 2


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ("cosin", "unknown schedule 'cosin': did you mean 'cosine'"),
        ({"name": "constant", "minimum": 0.1}, "constant: unknown field 'minimum'"),
        ({"name": "cosine", "minimum": 2}, "minimum ≥ 0 and ≤ 1"),
        ({"warmup": 6}, "a warm-up of 6 epochs is longer than the training of 5"),
        ({"warmup": -1}, "warmup ≥ 0"),
        ({"warmup": math.nan}, "warmup ≥ 0"),
        ({"by": "task"}, "multistep: by: input should be 'epoch' or 'step'"),
        (7, "training.schedule: expected a name"),
    ],
)
def test_wrong_schedules_are_refused_in_one_sentence(schedule: Any, says: str) -> None:
    training = {"epochs": 5, "schedule": schedule}
    with pytest.raises(UserError, match=says) as error:
        completed(make_config({"benchmark": "synthetic", "training": training}))
    assert "\n" not in str(error.value)


def test_a_scale_shortens_the_warm_up() -> None:
    schedule = {"name": "cosine", "warmup": 10, "minimum": 0.1}
    layers = {"preset": "cifar100-500-er-ace", "scale": "cpu", "training": {"schedule": schedule}}
    training = completed(make_config(layers)).training
    assert training.epochs == 4
    assert training.schedule.options == {"by": "epoch", "warmup": 0.8, "minimum": 0.1}


def test_the_default_is_complete() -> None:
    default = make_config({"benchmark": "synthetic"})
    assert completed(default).training.schedule == default.training.schedule
