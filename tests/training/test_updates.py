"""Several steps on every batch of the stream."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from liderlab.training.loop import Loop
from liderlab.types import Batch, Recipe, Terms

Build = Callable[..., Loop]
Differences = Callable[..., list[str]]
THRICE = Recipe(lr=0.05, batch_size=8, replay_size=8, updates=3)


def test_each_batch_is_trained_on_and_offered_once(build: Build) -> None:
    loop = build("er", epochs=1, recipe=THRICE, size=200)
    assert loop.planned_steps() == 3 * 9
    seen: list[tuple[set[bytes], Batch]] = []
    losses = loop.method.losses

    def spied(batch: Batch, step: object) -> Terms:
        seen.append(({bytes(x.numpy()) for x in batch.raw}, batch))
        return losses(batch, step)  # type: ignore[arg-type]

    loop.method.losses = spied  # type: ignore[method-assign]
    stored = [len(loop.memory) for _ in loop]
    assert loop.steps == 27
    for first in range(0, 27, 3):
        rows = [images for images, _ in seen[first : first + 3]]
        assert rows[0] == rows[1] == rows[2]
        one, other = seen[first][1], seen[first + 1][1]
        assert not one.x.equal(other.x)  # augmented anew
    assert stored[:10] == [0, 0, 8, 8, 8, 16, 16, 16, 24, 24]  # after the last of three


@pytest.mark.parametrize("method", ["er-ace", "x-der-rpc", "icarl", "gmed"])
@pytest.mark.parametrize("events", [2, 13])
def test_it_resumes_between_updates(
    build: Build, differences: Differences, method: str, events: int
) -> None:
    whole, first, second = (build(method, epochs=1, recipe=THRICE) for _ in range(3))
    for _ in whole:
        pass
    for number, _ in enumerate(first, 1):
        if number == events:
            break
    second.load_state_dict(first.state_dict())
    for _ in second:
        pass
    assert not differences(second.state_dict(), whole.state_dict())
