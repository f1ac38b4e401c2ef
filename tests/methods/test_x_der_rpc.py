"""X-DER: the simplex, the logit update and the loss, by hand and against the released code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from liderlab.functional.losses import head_margin, implant_logits, simplex_vertices
from liderlab.methods.x_der_rpc import XDER, Simplex
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop
from liderlab.types import Recipe

DOUBLE = torch.float64

# A step of the second of three tasks with two classes each, on a linear network. The values after
# "released" were made by running `XDerRPC.observe` of the authors' public code (mammoth,
# models/xder_rpc.py) on just these numbers, with a buffer that returns the two draws below, the
# times drawn as below, α = 0.4, β = 0.7 and its defaults for the rest.
WEIGHT = torch.tensor(
    [
        [-1.125, -1.125, -0.25, -0.375],
        [0.875, 0.75, -0.375, -2.125],
        [0.5, -0.125, 1.5, 0.25],
        [0.125, 0.875, -0.125, -0.125],
        [0.875, 1.25, 2.0, 0.0],
        [0.625, -0.375, -0.875, -2.375],
    ]
)
STREAM = (
    torch.tensor([[0.375, 1.5, 1.0, 0.75], [0.25, 1.25, -1.25, -0.75], [0.0, -0.75, 0.5, -1.375]]),
    torch.tensor([2, 3, 2]),
)
NEVER = 10**9  # drawn so often that another update is out of the question
MEMORY = {
    "x": torch.tensor(
        [
            [-0.625, 0.875, 1.125, 1.25],
            [0.875, -0.375, 1.0, 0.375],
            [0.0, -0.5, 1.125, 0.375],
            [-1.0, -1.0, 0.0, 0.75],
            [-1.5, -0.375, 1.0, 1.625],
        ]
    ),
    "y": torch.tensor([0, 1, 0, 1, 0]),
    "logits": torch.tensor(
        [
            [2.625, -3.375, -0.5, 0.5, 0.125, 2.25],
            [0.625, 0.4375, 0.875, -1.75, 1.625, -1.875],
            [0.1875, -0.625, -1.625, 1.125, 1.25, 0.875],
            [3.875, 1.0625, 2.25, -0.125, -1.25, -2.5],
            [0.125, -2.125, -0.625, 0.5, 0.75, 2.25],
        ]
    ),
    "draws": torch.tensor([0, 0, NEVER, NEVER, 0]),
}
DRAWS = ([0, 2, 3], [2, 4, 1])


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_simplex_corners_are_of_length_one_and_equally_far_apart(classes: int) -> None:
    vertices = simplex_vertices(classes).double()
    assert vertices.shape == (classes - 1, classes)
    expected = torch.full((classes, classes), -1 / (classes - 1), dtype=DOUBLE).fill_diagonal_(1)
    torch.testing.assert_close(vertices.T @ vertices, expected, atol=1e-6, rtol=0)


def test_simplex_is_the_released_one() -> None:
    # Made by `dsimplex(4)` of the authors' public code.
    released = torch.full((3, 3), -0.19245).fill_diagonal_(0.96225)
    released = torch.cat([released, torch.full((3, 1), -0.57735)], 1)
    torch.testing.assert_close(simplex_vertices(4), released, atol=1e-5, rtol=0)


def test_one_class_has_no_simplex() -> None:
    with pytest.raises(ValueError, match="at least 2 classes, but got 1"):
        simplex_vertices(1)


def test_the_last_unit_of_the_network_is_ignored() -> None:
    output = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    changed = output.clone()
    changed[:, -1] += 7
    assert torch.equal(Simplex(5)(output), Simplex(5)(changed))
    by_hand = [
        [float(output[i, :4] @ simplex_vertices(5)[:, c]) for c in range(5)] for i in range(3)
    ]
    torch.testing.assert_close(Simplex(5)(output), torch.tensor(by_hand))


def implanted_by_hand(
    stored: Tensor, new: Tensor, y: Tensor, classes: range, gamma: float
) -> Tensor:
    result = stored.clone()
    for row, label in enumerate(y.tolist()):
        largest = max(float(new[row, c]) for c in classes)
        true = float(stored[row, label])
        factor = gamma * true / largest if largest > true > 0 else 1.0
        for c in classes:
            result[row, c] = factor * new[row, c]
    return result


@pytest.mark.parametrize("classes", [range(2, 6), range(2), range(3, 4)])
def test_implanting_row_by_row(classes: range) -> None:
    generator = torch.Generator().manual_seed(classes.start)
    stored, new = torch.randn(2, 200, 6, dtype=DOUBLE, generator=generator)
    y = torch.randint(6, (200,), generator=generator)
    result = implant_logits(stored, new, y, classes, 0.85)
    torch.testing.assert_close(result, implanted_by_hand(stored, new, y, classes, 0.85))
    elsewhere = [c for c in range(6) if c not in classes]
    assert torch.equal(result[:, elsewhere], stored[:, elsewhere])


def test_implanted_logits_never_beat_a_positive_true_logit() -> None:
    generator = torch.Generator().manual_seed(0)
    stored, new = torch.randn(2, 500, 6, dtype=DOUBLE, generator=generator)
    y = torch.randint(2, (500,), generator=generator)
    result = implant_logits(stored, new, y, range(2, 6), 0.85)
    true = stored[torch.arange(500), y]
    assert (result[:, 2:].amax(1) <= true)[true > 0].all()
    assert (result[:, 2:].amax(1) < true)[true > 0].sum() > 100  # it was needed
    assert result.abs().max() <= torch.stack([stored, new]).abs().max()  # and nothing blows up


def test_nothing_to_implant_changes_nothing() -> None:
    stored = torch.randn(2, 4)
    assert torch.equal(
        implant_logits(stored, stored + 1, torch.zeros(2).long(), range(0), 1), stored
    )


def test_head_margin_by_hand() -> None:
    logits = torch.randn(50, 6, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    own = torch.zeros(50, 6, dtype=torch.bool)
    own[:25, :2], own[25:, 2:4] = True, True
    other = torch.tensor([False] * 4 + [True] * 2)
    expected = []
    for i, row in enumerate(logits.tolist()):
        mine = row[:2] if i < 25 else row[2:4]
        expected.append(max(0.0, 0.3 + max(row[4:]) - max(mine)))
    assert head_margin(logits, own, other, 0.3).tolist() == pytest.approx(expected)


def test_one_step_gives_the_released_loss_weights_and_stored_logits(
    make_step: Callable[..., Any],
) -> None:
    method = XDER(alpha=0.4, beta=0.7)
    step, batch = make_step(method, WEIGHT, train=STREAM, memory=MEMORY, draws=DRAWS)
    terms = method.losses(batch, step)
    assert set(terms) == {"stream", "logits", "replay", "future"}
    loss = sum(term.mean() for term in terms.values())
    assert loss.item() == pytest.approx(2.8095963, abs=1e-6)  # released
    step.take(loss)
    released = torch.tensor(
        [
            [-1.159042, -1.119518, -0.235456, -0.345132],
            [0.864542, 0.716659, -0.366318, -2.106913],
            [0.500302, -0.126968, 1.482217, 0.234984],
            [0.114898, 0.849362, -0.13919, -0.119157],
            [0.877323, 1.225741, 1.965539, -0.024555],
            [0.625, -0.375, -0.875, -2.375],
        ]
    )
    weight = step.network.backbone.fc.detach().float()
    torch.testing.assert_close(weight, released, atol=2e-6, rtol=0)
    released = MEMORY["logits"].clone()  # slots 2 and 3 keep theirs
    released[0] = torch.tensor([2.625, -3.375, 1.226419, 0.247354, 2.23125, -0.257703])
    released[1] = torch.tensor([0.625, 0.4375, 0.331594, -0.123009, 0.371875, -0.176194])
    released[4] = torch.tensor([0.125, -2.125, 0.10625, -0.027301, 0.042023, 0.095726])
    stored = step.memory.data["logits"].float()
    torch.testing.assert_close(stored, released, atol=2e-6, rtol=0)
    assert step.memory.data["draws"].tolist() == [1, 1, NEVER + 1, NEVER + 1, 1]


def test_the_constraint_counts_violators_once_and_stops_with_the_last_task(
    make_step: Callable[..., Any],
) -> None:
    method = XDER(eta=2.0, margin=0.3)
    step, batch = make_step(method, WEIGHT, train=STREAM, memory=MEMORY, draws=DRAWS)
    lacks = []
    rows = [(x, 1) for x in STREAM[0]] + [(MEMORY["x"][slot], 0) for slot in range(5)]
    for x, task in rows:
        logits = step.network(x.double()[None])[0].tolist()
        lacks.append(0.3 + max(logits[4:]) - max(logits[2 * task : 2 * task + 2]))
    violators = [lack for lack in lacks if lack > 0]
    assert 0 < len(violators) < len(rows)
    future = method.losses(batch, step)["future"]
    assert sorted(future.tolist()) == pytest.approx(sorted(2 * lack for lack in violators))

    last = (STREAM[0], torch.tensor([4, 5, 4]))
    step, batch = make_step(method, WEIGHT, train=last, task=2, memory=MEMORY, draws=DRAWS)
    assert "future" not in method.losses(batch, step)
    method = XDER(eta=0.0)
    step, batch = make_step(method, WEIGHT, train=STREAM, memory=MEMORY, draws=DRAWS)
    assert "future" not in method.losses(batch, step)


@pytest.mark.parametrize(
    ("size", "rows", "parts"),
    [
        (3, 1, [1]),
        (3, 3, [3]),
        (3, 4, [2, 2]),
        (3, 5, [3, 2]),
        (3, 12, [3, 3, 3, 3]),
        (2, 3, [3]),
    ],
)
def test_the_memory_passes_in_batches_of_the_replay_size_and_of_two_at_least(
    make_step: Callable[..., Any], size: int, rows: int, parts: list[int]
) -> None:
    memory = {"x": torch.randn(12, 4), "y": torch.arange(12) % 2, "draws": torch.zeros(12)}
    memory |= {"logits": torch.zeros(12, 6)}
    method = XDER()
    step, _ = make_step(method, WEIGHT, train=STREAM, memory=memory, size=12)
    step.fit = replace(step.fit, recipe=replace(step.fit.recipe, replay_size=size))
    found = list(method._outputs(torch.arange(rows), step))
    assert [len(slots) for slots, _ in found] == parts
    assert torch.cat([slots for slots, _ in found]).tolist() == list(range(rows))
    expected = step.network(step.memory.rows(torch.arange(rows))["x"])
    torch.testing.assert_close(torch.cat([output for _, output in found]), expected)


def test_without_a_memory_only_the_current_task_is_trained(make_step: Callable[..., Any]) -> None:
    method = XDER()
    first = (STREAM[0], torch.tensor([0, 1, 0]))
    step, batch = make_step(method, WEIGHT, train=first, task=0)
    terms = method.losses(batch, step)
    assert set(terms) == {"stream", "future"}
    logits = step.network(batch.x)
    expected = torch.nn.functional.cross_entropy(logits[:, :2], batch.y, reduction="none")
    torch.testing.assert_close(terms["stream"], expected)


def test_a_sample_drawn_n_times_is_updated_with_probability_one_in_n(
    make_step: Callable[..., Any],
) -> None:
    method = XDER()
    n, updated = 4, 0
    memory = MEMORY | {"draws": torch.full((5,), n - 1)}
    step, _ = make_step(method, WEIGHT, train=STREAM, memory=memory)
    for _ in range(400):
        step.memory.update(torch.arange(5), logits=MEMORY["logits"], draws=memory["draws"])
        method._refresh_drawn(torch.arange(5), torch.randn(5, 6, dtype=DOUBLE), step)
        changed = (step.memory.data["logits"] != MEMORY["logits"].double()).any(1)
        updated += int(changed.sum())
    assert abs(updated / 2000 - 1 / n) < 4.9 * (0.25 * 0.75 / 2000) ** 0.5  # once in 10⁶


def test_the_end_of_a_task_brings_all_stored_logits_up_to_date(
    make_step: Callable[..., Any],
) -> None:
    generator = torch.Generator().manual_seed(3)
    train = (torch.randn(20, 4, generator=generator), torch.arange(20) % 2 + 2)
    method = XDER(gamma=0.5)
    memory = MEMORY | {"draws": torch.arange(5)}
    step, _ = make_step(method, WEIGHT, train=train, memory=memory, size=8)
    before = {
        tuple(x): z.double() for x, z in zip(MEMORY["x"].tolist(), MEMORY["logits"], strict=True)
    }
    method.end_task(step)
    rows = step.memory.rows(torch.arange(len(step.memory)))
    assert torch.bincount(rows["y"]).tolist() == [2, 2, 2, 2]  # equal shares
    assert rows["draws"].tolist() == [0] * 8
    for x, y, task, logits in zip(rows["x"], rows["y"], rows["task"], rows["logits"], strict=True):
        output = step.network(x[None]).detach()
        if task == 1:  # new: what it says of past classes must not beat the truth
            expected = implanted_by_hand(output, output, y[None], range(2), 0.5)
        else:
            stored = before[tuple(x.flatten().tolist())][None]
            expected = implanted_by_hand(stored, output, y[None], range(2, 6), 0.5)
        torch.testing.assert_close(logits, expected[0])


def test_replay_leaves_running_statistics_to_the_stream(build: Callable[..., Loop]) -> None:
    """In a step with replay each BatchNorm counts one batch, the stream's."""
    loop = build("x-der-rpc")
    counted = dict(loop.network.named_buffers())["backbone.block1.1.num_batches_tracked"]
    for step, event in enumerate((e for e in loop if isinstance(e, StepDone)), start=1):
        assert int(counted) == step
        if event.task.index == 1 and event.batch == 2:
            assert "replay" in event.terms
            break


def test_negative_options_are_refused() -> None:
    with pytest.raises(ValueError, match="≥ 0"):
        XDER(eta=-1)


@pytest.mark.parametrize("policy", ["class-balanced", "reservoir"])
def test_a_memory_too_small_for_all_classes_will_do(
    policy: str, build: Callable[..., Loop]
) -> None:
    loop = build("x-der-rpc", size=2, policy=policy, epochs=1)
    for _ in loop:
        pass
    assert len(loop.memory) == 2
    assert loop.memory.data["logits"].isfinite().all()


@pytest.mark.parametrize(("size", "replay"), [(1, 8), (3, 8), (5, 2), (9, 2)])
def test_no_pass_at_the_end_of_a_task_has_a_single_row(
    size: int, replay: int, build: Callable[..., Loop]
) -> None:
    """On maps of one position BatchNorm could not train on it."""
    recipe = Recipe(lr=0.1, batch_size=8, replay_size=replay)
    loop = build("x-der-rpc", size=size, recipe=recipe, epochs=1, backbone="resnet18", width=4)
    for _ in loop:
        pass
    assert len(loop.memory) == size
    assert loop.memory.data["logits"].isfinite().all()
