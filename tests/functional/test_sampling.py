"""Probabilities are checked statistically (fixed seeds, bounds that a fair draw misses once in
10⁶), choices against brute force."""

import math
import time
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from torch import Tensor

from liderlab.functional.sampling import (
    cutmix,
    draw_without_replacement,
    keep_last,
    rank_in_class,
    reservoir_slots,
    wrong_labels,
)

RARE = 1e-6  # probability with which a fair draw would fail a statistical test


def assert_equally_likely(counts: Tensor, trials: int, probability: float) -> None:
    """Each of counts is Binomial(trials, p), negatively correlated as in a draw of fixed size.

    Σ (count − np)² / (n p (1 − p)) · (k − 1)/k is χ² with k − 1 degrees of freedom.
    """
    k = len(counts)
    spread = trials * probability * (1 - probability)
    statistic = ((counts - trials * probability) ** 2 / spread).sum() * (k - 1) / k
    low, high = chi2.ppf([RARE, 1 - RARE], k - 1)
    assert low < statistic < high, f"{statistic:.1f} is not in [{low:.1f}, {high:.1f}]: {counts}"


def reservoir(size: int, batches: Sequence[int], generator: torch.Generator) -> Tensor:
    """Which samples a reservoir holds in the end, if they come in batches of these sizes."""
    held = torch.full((size,), -1)
    seen = 0
    for n in batches:
        slots = reservoir_slots(seen, n, size, generator)
        kept = keep_last(slots)
        held[slots[kept]] = torch.arange(seen, seen + n)[kept]
        seen += n
    return held


@pytest.mark.parametrize(
    "batches",
    [[20], [7, 13], [3, 1, 9, 7]],
    ids=["at-once", "in-two", "uneven"],
)
def test_reservoir_keeps_every_sample_with_the_same_probability(batches: list[int]) -> None:
    size, trials = 4, 1000
    generator = torch.Generator().manual_seed(len(batches))
    counts = torch.zeros(20, dtype=torch.float64)
    for _ in range(trials):
        held = reservoir(size, batches, generator)
        assert len(held.unique()) == size
        counts[held] += 1
    assert_equally_likely(counts, trials, size / 20)


def test_one_by_one_and_in_batches_the_reservoir_is_the_same_to_the_draw() -> None:
    one_by_one, at_once, in_parts = (torch.Generator().manual_seed(3) for _ in range(3))
    expected = reservoir(5, [1] * 60, one_by_one)
    assert torch.equal(reservoir(5, [60], at_once), expected)
    assert torch.equal(reservoir(5, [11, 1, 33, 15], in_parts), expected)


def test_the_probability_to_enter_falls_with_the_samples_seen() -> None:
    generator = torch.Generator().manual_seed(0)
    trials, size, seen = 4000, 10, 39
    slots = torch.cat([reservoir_slots(seen, 1, size, generator) for _ in range(trials)])
    counts = torch.bincount(slots + 1, minlength=size + 1).double()
    expected = torch.full((size + 1,), trials / 40, dtype=torch.float64)
    expected[0] = trials * (1 - size / 40)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < chi2.ppf(1 - RARE, size)


def test_no_sample_is_left_out_before_the_reservoir_is_full() -> None:
    slots = reservoir_slots(2, 9, 8, torch.Generator().manual_seed(0))
    assert slots[:6].tolist() == [2, 3, 4, 5, 6, 7]
    assert (slots < 8).all()
    assert (slots >= -1).all()


def test_a_reservoir_without_room_takes_nothing() -> None:
    assert (reservoir_slots(0, 50, 0, torch.Generator()) == -1).all()


@given(st.lists(st.integers(-1, 6), max_size=30))
def test_keep_last_marks_the_rows_that_survive_writing_in_order(slots: list[int]) -> None:
    written = {slot: row for row, slot in enumerate(slots) if slot >= 0}
    expected = [written.get(slot) == row for row, slot in enumerate(slots)]
    assert keep_last(torch.tensor(slots, dtype=torch.int64)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), max_size=30))
def test_rank_in_class_counts_the_larger_keys_of_the_class(rows: list[tuple[int, int]]) -> None:
    y = torch.tensor([c for c, _ in rows], dtype=torch.int64)
    key = torch.tensor([k for _, k in rows], dtype=torch.float64)
    expected = [  # of equal keys, the earlier row ranks first
        sum(c == y_i and (k > k_i or (k == k_i and j < i)) for j, (c, k) in enumerate(rows))
        for i, (y_i, k_i) in enumerate(rows)
    ]
    assert rank_in_class(y, key).tolist() == expected


@given(st.integers(0, 40), st.integers(0, 200), st.integers(0, 2**32))
def test_a_draw_is_of_different_numbers_in_range(n: int, size: int, seed: int) -> None:
    drawn = draw_without_replacement(n, size, torch.Generator().manual_seed(seed))
    assert len(drawn) == len(drawn.unique()) == min(n, size)
    assert ((drawn >= 0) & (drawn < size)).all()


@pytest.mark.parametrize(("n", "size"), [(5, 12), (3, 30)], ids=["permutation", "rejection"])
def test_every_number_is_equally_likely_at_every_place(n: int, size: int) -> None:
    trials = 3000
    generator = torch.Generator().manual_seed(n)
    draws = torch.stack([draw_without_replacement(n, size, generator) for _ in range(trials)])
    assert_equally_likely(
        torch.bincount(draws.flatten(), minlength=size).double(), trials, n / size
    )
    for place in range(n):
        counts = torch.bincount(draws[:, place], minlength=size).double()
        assert_equally_likely(counts, trials, 1 / size)


def test_pairs_are_equally_likely_too() -> None:
    size, trials = 9, 4000
    generator = torch.Generator().manual_seed(5)
    draws = torch.stack([draw_without_replacement(2, size, generator) for _ in range(trials)])
    low, high = draws.sort(1).values.T
    assert_equally_likely(_pairs(low, high, size), trials, 1 / (size * (size - 1) / 2))


def _pairs(low: Tensor, high: Tensor, size: int) -> Tensor:
    return (
        torch.bincount(low * size + high, minlength=size**2)
        .double()
        .reshape(size, size)[tuple(torch.triu_indices(size, size, 1))]
    )


def test_the_cost_of_a_draw_does_not_grow_with_the_memory() -> None:
    generator = torch.Generator().manual_seed(0)

    def seconds(size: int) -> float:
        times = []
        for _ in range(20):
            start = time.perf_counter()
            draw_without_replacement(32, size, generator)
            times.append(time.perf_counter() - start)
        return min(times)

    # Shuffling ten million slots takes about 100 ms, a draw by rejection about 0.05 ms.
    assert seconds(10_000_000) < 10 * seconds(1_000) + 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_cutmix_takes_a_box_of_the_partner(seed: int) -> None:
    """Pixel by pixel, with the same draws."""
    height, width, draws = 7, 12, torch.Generator().manual_seed(seed)
    x = torch.rand(4, 2, height, width, dtype=torch.float64)
    mixed, partner, share = cutmix(x, 0.7, torch.Generator().manual_seed(seed))
    order = torch.randperm(4, generator=draws)
    lam = np.random.default_rng(int(torch.randint(2**62, (), generator=draws))).beta(0.7, 0.7)
    place = torch.rand(2, generator=draws) * torch.tensor([height, width])
    half = [int(side * math.sqrt(1 - lam)) // 2 for side in (height, width)]
    own = 0
    for i in range(height):
        for j in range(width):
            inside = all(
                int(centre) - reach <= at < int(centre) + reach
                for at, centre, reach in zip((i, j), place, half, strict=True)
            )
            own += not inside
            assert torch.equal(mixed[:, :, i, j], (x[order] if inside else x)[:, :, i, j])
    assert partner.tolist() == order.tolist()
    assert share == pytest.approx(own / (height * width))


def test_wrong_labels_row_by_row() -> None:
    """With the same draws: hit by the first, moved by the second as many classes further."""
    classes, probability = [(0, 3, 5, 9), (1, 2), (7,)], 0.7
    task = torch.arange(60) % 3
    y = torch.tensor([classes[t][i % len(classes[t])] for i, t in enumerate(task.tolist())])
    labels, replaced = wrong_labels(y, task, classes, probability, torch.Generator().manual_seed(1))
    draws = torch.Generator().manual_seed(1)
    hit, which = torch.rand(2, 60, dtype=torch.float64, generator=draws).tolist()
    for i, t in enumerate(task.tolist()):
        own = classes[t]
        wrong = len(own) > 1 and hit[i] < probability
        away = 1 + int(which[i] * (len(own) - 1)) if wrong else 0
        assert labels[i] == own[(own.index(y[i].item()) + away) % len(own)]
        assert replaced[i] == wrong
        assert (labels[i] != y[i]) == wrong


def test_just_enough_different_numbers_are_not_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = torch.tensor([7, 7, 2, 7, 5, 2, 5, 5, 5, 5, 5, 5, 5, 5])
    monkeypatch.setattr(torch, "randint", lambda size, shape, generator: drawn)
    found = draw_without_replacement(3, 100, torch.Generator())
    assert found.tolist() == [7, 2, 5]


@pytest.mark.parametrize(("n", "size"), [(5, 20), (5, 21), (5, 24), (3, 1000)])
def test_a_small_part_is_drawn_by_rejection(n: int, size: int) -> None:
    """To the draw: the first n different ones of 2n + 8; from a quarter of all on, a shuffle."""
    twin = torch.Generator().manual_seed(n)
    if size <= 4 * n:
        expected = torch.randperm(size, generator=twin)[:n].tolist()
    else:
        drawn = torch.randint(size, (2 * n + 8,), generator=twin).tolist()
        expected = list(dict.fromkeys(drawn))[:n]
    generator = torch.Generator().manual_seed(n)
    assert draw_without_replacement(n, size, generator).tolist() == expected
    assert torch.equal(generator.get_state(), twin.get_state())
