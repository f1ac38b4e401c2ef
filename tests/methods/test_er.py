"""ER: cross-entropy on the stream and on one draw."""

from collections.abc import Callable
from typing import Any

import torch


def cross_entropy(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return logits.exp().sum(1).log() - logits[torch.arange(len(y)), y]


def test_the_losses_by_hand(scene: Callable[..., Any]) -> None:
    at = scene("er")
    terms = at.losses()
    assert list(terms) == ["stream", "replay"]
    (replay,) = at.drawn
    assert len(replay) == 6
    assert torch.allclose(terms["stream"], cross_entropy(at.logits(at.batch.x), at.batch.y))
    assert torch.allclose(terms["replay"], cross_entropy(at.logits(replay.x), replay.y))


def test_it_replays_in_the_first_task_too(scene: Callable[..., Any]) -> None:
    assert list(scene("er", task=0).losses()) == ["stream", "replay"]


def test_while_the_memory_is_empty_there_is_no_replay(scene: Callable[..., Any]) -> None:
    at = scene("er")
    at.loop.memory.rebuild(torch.arange(0))
    assert list(at.losses()) == ["stream"]


def test_the_batch_is_offered_after_the_step(scene: Callable[..., Any]) -> None:
    at = scene("er", size=50)
    at.losses()
    assert len(at.loop.memory) == 24
    at.step.finish()
    assert len(at.loop.memory) == 31
    stored = at.loop.memory.rows(torch.arange(24, 31))
    assert torch.equal(stored["x"], at.batch.raw)
    assert torch.equal(stored["y"], at.batch.y)
