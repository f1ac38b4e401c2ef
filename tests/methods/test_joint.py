"""Joint: nothing to train before the last task, then everything."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch


def test_the_loss_by_hand(scene: Callable[..., Any]) -> None:
    at = scene("joint")
    terms = at.losses()
    assert list(terms) == ["stream"]
    logits = at.logits(at.batch.x).tolist()
    expected = [
        math.log(sum(math.exp(v) for v in row)) - row[y]
        for row, y in zip(logits, at.batch.y.tolist(), strict=True)
    ]
    assert terms["stream"].tolist() == pytest.approx(expected, rel=1e-12)


def test_the_plan_is_one_fit_on_all_data_at_the_end(scene: Callable[..., Any]) -> None:
    loop = scene("joint").loop
    recipe = object()
    plans = [
        loop.method.plan(task, loop.stream, recipe, 5, loop.memory) for task in loop.stream.tasks
    ]
    assert plans[:2] == [[], []]
    (fit,) = plans[2]
    assert fit.epochs == 5
    assert fit.recipe is recipe  # the same schedule as a single task's
    rows = fit.data.rows(torch.arange(len(fit.data)))
    assert torch.bincount(rows["y"]).tolist() == [12] * 6
    assert torch.bincount(rows["task"]).tolist() == [24] * 3
