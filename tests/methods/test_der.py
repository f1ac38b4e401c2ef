"""DER++: stored logits on one draw, labels on another; DER: without the labels."""

from collections.abc import Callable
from typing import Any

import pytest
import torch


def cross_entropy(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return logits.exp().sum(1).log() - logits[torch.arange(len(y)), y]


def test_the_losses_by_hand(scene: Callable[..., Any]) -> None:
    at = scene("der++", alpha=0.3, beta=0.7)
    terms = at.losses()
    assert list(terms) == ["stream", "logits", "replay"]
    first, second = at.drawn
    assert torch.allclose(terms["stream"], cross_entropy(at.logits(at.batch.x), at.batch.y))
    stored = at.loop.memory.data["logits"]
    outputs = at.logits(first.x)
    for i, slot in enumerate(first.slot.tolist()):
        distance = sum(float(outputs[i, c] - stored[slot, c]) ** 2 for c in range(6)) / 6
        assert terms["logits"][i].item() == pytest.approx(0.3 * distance, rel=1e-12)
    expected = 0.7 * cross_entropy(at.logits(second.x), second.y)
    assert torch.allclose(terms["replay"], expected)


def test_its_two_draws_are_independent(scene: Callable[..., Any]) -> None:
    at = scene("der++")
    overlaps = []
    for _ in range(60):
        at.drawn.clear()
        at.losses()
        first, second = (set(batch.slot.tolist()) for batch in at.drawn)
        overlaps.append(len(first & second))
    # 6 of 20 slots each: the overlap is hypergeometric, mean 1.8, variance 6·0.3·0.7·14/19
    deviation = (6 * 0.3 * 0.7 * 14 / 19 / 60) ** 0.5
    assert abs(sum(overlaps) / 60 - 1.8) < 5 * deviation


def test_it_stores_the_logits_of_the_augmented_input_at_that_moment(
    scene: Callable[..., Any],
) -> None:
    at = scene("der++", size=50)
    expected = at.logits(at.batch.x)
    at.losses()
    with torch.no_grad():
        for parameter in at.loop.network.parameters():
            parameter.mul_(0.5)  # the step is taken, then the memory is offered the batch
    at.step.finish()
    stored = at.loop.memory.rows(torch.arange(24, 31))
    assert torch.equal(stored["x"], at.batch.raw)
    assert torch.equal(stored["logits"], expected.float())


def test_der_replays_logits_alone(scene: Callable[..., Any]) -> None:
    at = scene("der", alpha=0.3)
    terms = at.losses()
    assert list(terms) == ["stream", "logits"]
    (replay,) = at.drawn
    distance = (at.logits(replay.x) - replay.columns["logits"]).square().mean(1)
    assert torch.allclose(terms["logits"], 0.3 * distance)


def test_while_the_memory_is_empty_there_is_no_replay(scene: Callable[..., Any]) -> None:
    at = scene("der++")
    at.loop.memory.rebuild(torch.arange(0))
    assert list(at.losses()) == ["stream"]


@pytest.mark.parametrize("options", [{"alpha": -0.1}, {"beta": -1.0}])
def test_negative_weights_are_refused(scene: Callable[..., Any], options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="≥ 0, but got"):
        scene("der++", **options)
