"""Which samples the policies keep."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from torch import Tensor

from liderlab.memory import Column, Memory
from liderlab.memory.buffer import Policy
from liderlab.memory.policies import ClassBalanced, GreedyBalanced, Reservoir

RARE = 1e-6  # probability with which a fair draw would fail a statistical test


def memory_after(labels: Tensor, size: int, policy: Policy, seed: int, batch: int) -> Memory:
    """A memory that was offered these labels in order; column `number` says which it holds."""
    memory = Memory(size, (1, 1, 1), {"number": Column((), torch.int64)}, policy)
    generator = torch.Generator().manual_seed(seed)
    number = torch.arange(len(labels))
    for part in number.split(batch):
        x = torch.zeros(len(part), 1, 1, 1, dtype=torch.uint8)
        memory.offer(generator, x=x, y=labels[part], task=labels[part], number=part)
    return memory


def test_reservoir_is_uniform_over_all_that_was_offered() -> None:
    trials, n, size = 1000, 24, 6
    counts = torch.zeros(n, dtype=torch.float64)
    for seed in range(trials):
        memory = memory_after(torch.zeros(n, dtype=torch.int64), size, Reservoir(), seed, batch=9)
        counts[memory.data["number"]] += 1
    p = size / n
    statistic = float(((counts - trials * p) ** 2).sum() / (trials * p * (1 - p)) * (n - 1) / n)
    assert chi2.ppf(RARE, n - 1) < statistic < chi2.ppf(1 - RARE, n - 1)


@pytest.mark.parametrize("policy", [ClassBalanced(), GreedyBalanced()], ids=["random", "greedy"])
@given(
    offered=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    size=st.integers(1, 25),
    batch=st.integers(1, 11),
    shuffled=st.booleans(),
    seed=st.integers(0, 9999),
)
def test_balanced_class_counts_differ_by_at_most_one(
    policy: Policy, offered: list[int], size: int, batch: int, shuffled: bool, seed: int
) -> None:
    """Except for classes that have fewer samples and are stored completely."""
    labels = torch.tensor([c for c, n in enumerate(offered) for _ in range(n)])
    if shuffled:
        labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]
    memory = memory_after(labels, size, policy, seed, batch)
    assert len(memory) == min(size, len(labels))
    stored = Counter(memory.data["y"][: len(memory)].tolist())
    shares = [stored[c] for c in range(len(offered))]
    incomplete = [share for share, n in zip(shares, offered, strict=True) if share < n]
    assert max(incomplete, default=0) - min(incomplete, default=0) <= 1
    assert max(shares) <= min(incomplete, default=max(shares)) + 1


@pytest.mark.parametrize("policy", [ClassBalanced(), GreedyBalanced()], ids=["random", "greedy"])
@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=40),
    size=st.integers(0, 15),
    batch=st.integers(1, 13),
    seed=st.integers(0, 9999),
)
def test_balanced_policies_do_not_depend_on_the_batch_size(
    policy: Policy, labels: list[int], size: int, batch: int, seed: int
) -> None:
    y = torch.tensor(labels)
    in_batches = memory_after(y, size, policy, seed, batch)
    at_once = memory_after(y, size, policy, seed, len(y))
    kept, expected = (m.data["number"][: len(m)].tolist() for m in (in_batches, at_once))
    assert sorted(kept) == sorted(expected)


def test_class_balanced_is_uniform_within_each_class() -> None:
    trials, size, of_class = 800, 9, {0: 30, 1: 18, 2: 12}  # three of each class stay
    labels = torch.tensor([c for c, n in of_class.items() for _ in range(n)])
    counts = torch.zeros(len(labels), dtype=torch.float64)
    for seed in range(trials):
        memory = memory_after(labels, size, ClassBalanced(), seed, batch=20)
        counts[memory.data["number"]] += 1
    for c, n in of_class.items():
        p = 3 / n
        excess = ((counts[labels == c] - trials * p) ** 2).sum() / (trials * p * (1 - p))
        statistic = float(excess * (n - 1) / n)
        assert chi2.ppf(RARE, n - 1) < statistic < chi2.ppf(1 - RARE, n - 1), c
