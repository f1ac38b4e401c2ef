"""CaSpeR in the lab: its rows, its term, its refusals, BatchNorm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from liderlab.errors import UserError
from liderlab.functional.neighbor_graph import neighbor_laplacian, spectral_gap
from liderlab.regularizers.casper import CaSpeR
from liderlab.training.loop import Loop, StepDone
from liderlab.training.step import Step
from liderlab.types import Recipe

Build = Callable[..., Loop]


def prepared(build: Build, **options: Any) -> tuple[Loop, Step]:
    """A loop in its second task and a step of it."""
    loop = build("er", {"casper": {"neighbors": 3, **options}})
    events = iter(loop)
    while loop.cursor.task == 0:
        next(events)
    loop.network.train()
    task = loop.stream.tasks[1]
    return loop, loop._step(task, loop._plan(task)[0], 0)


@pytest.mark.parametrize(("gap", "more", "neighbors"), [("paper", 0, 3), ("released", 1, 1)])
def test_the_term_is_the_gap_of_the_drawn_features(
    gap: str, more: int, neighbors: int, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, step = prepared(build, weight=0.5, gap=gap, neighbors=neighbors)
    taken: list[Any] = []
    take = step.take
    monkeypatch.setattr(step, "take", lambda *a: taken.append(take(*a)) or taken[-1])
    (term,) = loop.regularizers[0].losses(step).values()
    (batch,) = taken
    counts = batch.y.bincount()
    assert sorted(counts[counts > 0].tolist()) == [4, 4]  # a task has two classes
    x = loop.network.features(batch.x)
    truth = 0.5 * spectral_gap(neighbor_laplacian(x, neighbors), 2 + more)
    torch.testing.assert_close(term, truth)
    assert abs(truth.item()) > 1e-3
    first = list(loop.network.backbone.block1.parameters())  # type: ignore[union-attr]
    assert any(gradient.any() for gradient in torch.autograd.grad(term, first))


def test_there_is_no_term_in_the_first_task(build: Build) -> None:
    loop, terms = build("er", {"casper": {"neighbors": 3}}), []
    for event in loop:
        if isinstance(event, StepDone):
            terms.append((event.task.index, "casper" in event.terms))
    assert (0, True) not in terms
    assert terms.count((1, True)) > terms.count((1, False))  # a class may have too few rows


def test_classes_with_too_few_rows_give_no_term(build: Build) -> None:
    loop, step = prepared(build, classes=1, neighbors=7)
    loop.memory.data["y"][:] = torch.arange(18) % 6  # three rows of each class
    assert loop.regularizers[0].losses(step) == {}


def test_statistics_stay(build: Build) -> None:
    loop, step = prepared(build)
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    assert loop.regularizers[0].losses(step)
    for name, value in loop.network.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_it_pulls_replayed_classes_apart(build: Build) -> None:
    """The share of neighbours that have another class falls."""

    def gap(weight: float) -> float:
        loop = build("er", {"casper": {"weight": weight, "neighbors": 3}}, epochs=6)
        assert all(loop)
        batch = loop._step(loop.stream.tasks[2], loop._plan(loop.stream.tasks[2])[0], 0).batch(
            loop.memory.rows(torch.arange(18)), None
        )
        with torch.no_grad():
            x = loop.network.eval().features(batch.x)
            return float(spectral_gap(neighbor_laplacian(x, 2), len(batch.y.unique())))

    assert gap(0.3) < gap(0.0)


@pytest.mark.parametrize("small", ["replay", "memory"])
def test_too_few_rows_for_the_neighbours_are_refused(small: str, build: Build) -> None:
    options: Any = {"size": 8, "recipe": Recipe(lr=0.1)} if small == "memory" else {}
    with pytest.raises(UserError, match="needs more rows than that, not 8: raise"):
        build("er", {"casper": {"neighbors": 8}}, **options)


def test_without_weight_any_number_of_rows_will_do() -> None:
    few = Recipe(0.1, replay_size=3)
    CaSpeR(weight=0.0, neighbors=10).check(few, memory=2)
    CaSpeR(weight=1e-9, neighbors=2).check(few, memory=5)
    with pytest.raises(UserError, match="needs more rows than that, not 3"):
        CaSpeR(weight=1e-9, neighbors=3).check(few, memory=5)
