"""Finetune: cross-entropy on the stream, and nothing else."""

import math
from collections.abc import Callable
from typing import Any

import pytest


def test_the_loss_by_hand(scene: Callable[..., Any]) -> None:
    at = scene("finetune")
    terms = at.losses()
    assert list(terms) == ["stream"]
    logits = at.logits(at.batch.x).tolist()
    expected = [
        math.log(sum(math.exp(v) for v in row)) - row[y]
        for row, y in zip(logits, at.batch.y.tolist(), strict=True)
    ]
    assert terms["stream"].tolist() == pytest.approx(expected, rel=1e-12)


def test_it_has_no_memory(scene: Callable[..., Any]) -> None:
    at = scene("finetune")
    at.losses()
    at.step.finish()
    assert not at.drawn
    assert at.loop.memory.seen == 0
