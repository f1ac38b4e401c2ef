"""Label poisoning: the right fraction, within the task, and nothing else changed."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from liderlab.memory import POLICIES, Column, Memory, Poison

TASKS = [range(4), range(4, 5), range(5, 8)]
CLASSES = 8
RARE = 1e-6  # probability with which a fair draw would fail a statistical test


def rows(n: int, seed: int = 0, classes: range = range(CLASSES)) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes.start, classes.stop, (n,), generator=generator)
    return {
        "x": torch.randint(256, (n, 1, 2, 2), dtype=torch.uint8, generator=generator),
        "y": y,
        "task": torch.tensor([i for i, task in enumerate(TASKS) for _ in task])[y],
        "logits": torch.randn(n, CLASSES, generator=generator),
        "truth": y,
    }


def memory(p: float | None, size: int = 50, policy: str = "reservoir", seed: int = 0) -> Memory:
    columns = {"logits": Column((CLASSES,)), "truth": Column((), torch.int64)}
    poison = None if p is None else Poison(p, TASKS, seed)
    return Memory(size, (1, 2, 2), columns, POLICIES.load(policy)(), poison)


def filled(p: float | None, size: int = 50, **how: Any) -> Memory:
    result, generator = memory(p, size, **how), torch.Generator().manual_seed(1)
    for part in range(4):
        result.offer(generator, **rows(size, part))
    return result


@pytest.mark.parametrize("p", [0.01, 0.1, 0.25])
def test_the_fraction_of_wrong_labels(p: float) -> None:
    n = 20_000
    y, task = rows(n, classes=TASKS[0])["y"], torch.zeros(n, dtype=torch.int64)
    labels, poisoned = Poison(p, TASKS, seed=0)(y, task)
    assert torch.equal(labels != y, poisoned)  # p is the share of wrong labels
    deviation = (n * p * (1 - p)) ** 0.5
    assert abs(int(poisoned.sum()) - n * p) < 4.9 * deviation


def test_wrong_labels_are_uniform_over_the_other_classes_of_the_task() -> None:
    n = 20_000
    given = rows(n)
    labels, poisoned = Poison(1.0, TASKS, seed=0)(given["y"], given["task"])
    for task, classes in enumerate(TASKS):
        for c in classes:
            got = torch.bincount(labels[given["y"] == c], minlength=CLASSES)
            others = [k for k in classes if k != c]
            assert int(got.sum()) == int(got[others or [c]].sum())  # one class alone stays clean
            if others:
                expected = got.sum() / len(others)
                statistic = float(((got[others] - expected) ** 2 / expected).sum())
                assert statistic < chi2.ppf(1 - RARE, len(others) - 1), (task, c)
    assert torch.equal(poisoned, given["task"] != 1)


@pytest.mark.parametrize("policy", ["reservoir", "class-balanced", "greedy-balanced"])
def test_only_labels_differ_from_a_clean_memory(policy: str) -> None:
    clean, dirty = memory(None, policy=policy), memory(0.3, policy=policy)
    for each in (clean, dirty):
        each.offer(torch.Generator().manual_seed(3), **rows(200))
    assert "poisoned" not in clean.data
    for name, column in clean.data.items():
        if name != "y":
            assert torch.equal(column, dirty.data[name]), name  # the logits too
    wrong = dirty.data["y"] != dirty.data["truth"]
    assert torch.equal(wrong, dirty.data["poisoned"])
    assert 0 < int(wrong.sum()) < 50


def test_probability_zero_changes_no_label() -> None:
    clean, none = filled(None), filled(0.0)
    assert torch.equal(clean.data["y"], none.data["y"])
    assert not none.data["poisoned"].any()


def test_rebuilding_poisons_the_new_rows_and_leaves_the_kept_ones() -> None:
    each = filled(0.5)
    before = each.rows(torch.tensor([3, 7, 11]))
    each.rebuild(torch.tensor([3, 7, 11]), **rows(40, 9, TASKS[2]))
    kept, new = each.rows(torch.arange(3)), each.rows(torch.arange(3, 43))
    assert torch.equal(kept["y"], before["y"])
    assert torch.equal(kept["poisoned"], before["poisoned"])
    assert torch.equal(new["poisoned"], new["y"] != new["truth"])
    assert 8 < int(new["poisoned"].sum()) < 32
    each.rebuild(torch.arange(2))
    assert len(each) == 2


def test_the_poisoned_flag_belongs_to_its_sample() -> None:
    """A clean sample that takes a poisoned one's slot is not called poisoned."""
    each = filled(1.0)
    assert each.poison is not None
    each.poison.probability = 0.0
    slots = each.offer(torch.Generator(), **rows(2000, 7))
    entered = slots[slots >= 0].unique()
    assert len(entered) > 5
    assert not each.data["poisoned"][entered].any()


def test_the_generator_is_part_of_the_state(differences: Callable[..., list[str]]) -> None:
    first = filled(0.5)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = memory(0.5, seed=99)
    second.load_state_dict(torch.load(file, weights_only=True))
    for each in (first, second):
        each.offer(torch.Generator().manual_seed(5), **rows(300, 5))
    assert not differences(first.state_dict(), second.state_dict())
    assert differences(filled(0.5, seed=1).state_dict(), filled(0.5).state_dict())


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_a_probability_is_between_zero_and_one(p: float) -> None:
    with pytest.raises(ValueError, match=r"≥ 0 and ≤ 1"):
        Poison(p, TASKS, 0)
