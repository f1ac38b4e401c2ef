"""ER-ACE: whose logits the stream loss leaves alone."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch


def by_hand(row: list[float], y: int, classes: list[int]) -> float:
    """−log of the label's share among these classes."""
    return math.log(sum(math.exp(row[c]) for c in classes)) - row[y]


def test_the_stream_loss_runs_over_present_and_unseen_classes(scene: Callable[..., Any]) -> None:
    at = scene("er-ace", rows=7)
    present = set(at.batch.y.tolist())
    assert present == {2, 3}
    terms = at.losses()
    logits = at.logits(at.batch.x).tolist()
    classes = [c for c in range(6) if c in present or c >= 4]  # 0 and 1 are past
    expected = [by_hand(r, y, classes) for r, y in zip(logits, at.batch.y.tolist(), strict=True)]
    assert terms["stream"].tolist() == pytest.approx(expected, rel=1e-12)


def test_a_class_of_the_task_that_is_absent_from_the_batch_is_masked(
    scene: Callable[..., Any],
) -> None:
    at = scene("er-ace", rows=1)
    (y,) = at.batch.y.tolist()
    terms = at.losses()
    (row,) = at.logits(at.batch.x).tolist()
    assert terms["stream"].tolist() == pytest.approx([by_hand(row, y, [y, 4, 5])], rel=1e-12)
    gradient = torch.autograd.grad(terms["stream"].sum(), at.loop.network.backbone.fc.bias)[0]
    untouched = [c for c in range(4) if c != y]
    assert (gradient[untouched] == 0).all()
    assert (gradient[[y, 4, 5]] != 0).all()


def test_in_the_last_task_only_the_present_classes_are_left(scene: Callable[..., Any]) -> None:
    at = scene("er-ace", task=2)
    terms = at.losses()
    logits = at.logits(at.batch.x).tolist()
    expected = [by_hand(r, y, [4, 5]) for r, y in zip(logits, at.batch.y.tolist(), strict=True)]
    assert terms["stream"].tolist() == pytest.approx(expected, rel=1e-12)


def test_the_replay_loss_runs_over_all_classes(scene: Callable[..., Any]) -> None:
    at = scene("er-ace")
    terms = at.losses()
    (replay,) = at.drawn
    logits = at.logits(replay.x).tolist()
    classes = list(range(6))
    expected = [by_hand(r, y, classes) for r, y in zip(logits, replay.y.tolist(), strict=True)]
    assert terms["replay"].tolist() == pytest.approx(expected, rel=1e-12)


def test_the_first_task_has_neither_mask_nor_replay(scene: Callable[..., Any]) -> None:
    at = scene("er-ace", task=0, rows=1)  # the task's other class is absent
    terms = at.losses()
    assert list(terms) == ["stream"]
    assert not at.drawn
    (row,), (y,) = at.logits(at.batch.x).tolist(), at.batch.y.tolist()
    assert terms["stream"].tolist() == pytest.approx([by_hand(row, y, list(range(6)))], rel=1e-12)
    at.step.finish()
    assert at.loop.memory.seen == 25  # but it fills the memory


def test_it_stores_the_stream_batch(scene: Callable[..., Any]) -> None:
    at = scene("er-ace", size=50)
    at.losses()
    at.step.finish()
    assert torch.equal(at.loop.memory.rows(torch.arange(24, 31))["x"], at.batch.raw)
