"""Herding against the paper's formula, candidate by candidate."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from liderlab.functional.sampling import herding_order
from liderlab.memory import POLICIES, Memory


def herded_one_by_one(features: Tensor, n: int) -> list[int]:
    """argmin_x ‖μ − 1/k (φ(x) + Σ_j φ(p_j))‖, written as the paper prints it."""
    rows, chosen = features.double(), list[int]()
    mean = sum(rows) / len(rows)
    for k in range(1, min(n, len(rows)) + 1):
        distances = {}
        for i in range(len(rows)):
            if i not in chosen:
                average = (rows[i] + sum(rows[j] for j in chosen)) / k
                distances[i] = float((mean - average).norm())
        chosen.append(min(distances, key=lambda i: distances[i]))
    return chosen


@given(m=st.integers(1, 14), d=st.integers(1, 5), n=st.integers(0, 16), seed=st.integers(0, 9999))
def test_the_order_is_that_of_the_paper(m: int, d: int, n: int, seed: int) -> None:
    features = torch.randn(m, d, generator=torch.Generator().manual_seed(seed))
    assert herding_order(features, n).tolist() == herded_one_by_one(features, n)


def test_a_shorter_choice_is_a_prefix_of_the_order() -> None:
    features = torch.randn(60, 8, generator=torch.Generator().manual_seed(0))
    order = herding_order(features, 60)
    assert sorted(order.tolist()) == list(range(60))
    for n in (1, 7, 30):
        assert torch.equal(herding_order(features, n), order[:n])


def test_herded_rows_are_nearer_to_the_mean_than_random_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(500, 16, generator=generator)
    mean = features.mean(0)
    herded = (features[herding_order(features, 10)].mean(0) - mean).norm()
    at_random = [
        (features[torch.randperm(500, generator=generator)[:10]].mean(0) - mean).norm()
        for _ in range(50)
    ]
    assert herded < 0.5 * min(at_random)


def test_equal_rows_are_still_chosen_once_each() -> None:
    assert sorted(herding_order(torch.ones(5, 3), 5).tolist()) == [0, 1, 2, 3, 4]


def test_features_are_not_modified() -> None:
    features = torch.randn(9, 4, dtype=torch.float64)
    before = features.clone()
    herding_order(features, 5)
    assert torch.equal(features, before)


def test_a_herding_memory_takes_nothing_from_the_stream() -> None:
    memory = Memory(4, (1, 1, 1), {}, POLICIES.load("herding")())
    y = torch.zeros(2, dtype=torch.int64)
    rows = {"x": torch.zeros(2, 1, 1, 1, dtype=torch.uint8), "y": y, "task": y}
    with pytest.raises(ValueError, match="choose reservoir, class-balanced or greedy-balanced"):
        memory.offer(torch.Generator(), **rows)
    memory.rebuild(torch.zeros(0, dtype=torch.int64), **rows)
    assert len(memory) == 2
