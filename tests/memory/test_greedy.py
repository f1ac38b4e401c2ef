"""The greedy balanced policy against a loop over samples."""

from __future__ import annotations

from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st

from liderlab.memory import Column, Memory
from liderlab.memory.policies import GreedyBalanced


def kept_one_by_one(labels: list[int], size: int) -> list[int]:
    """A sample enters; if there are too many, a largest class gives up its latest (of several
    largest classes, the one whose latest is the latest)."""
    kept: list[int] = []
    for number in range(len(labels)):
        kept.append(number)
        if len(kept) > size:
            counts = Counter(labels[i] for i in kept)
            largest = [c for c in counts if counts[c] == max(counts.values())]
            kept.remove(max(i for i in kept if labels[i] in largest))
    return kept


def kept_by_the_policy(labels: list[int], size: int, batch: int) -> list[int]:
    memory = Memory(size, (1, 1, 1), {"number": Column((), torch.int64)}, GreedyBalanced())
    for number in torch.arange(len(labels)).split(batch):
        y = torch.tensor(labels)[number]
        x = torch.zeros(len(y), 1, 1, 1, dtype=torch.uint8)
        memory.offer(torch.Generator(), x=x, y=y, task=y, number=number)
    return sorted(memory.data["number"][: len(memory)].tolist())


@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    size=st.integers(1, 20),
    batch=st.integers(1, 17),
)
def test_batches_keep_the_same_samples_as_a_loop(labels: list[int], size: int, batch: int) -> None:
    assert kept_by_the_policy(labels, size, batch) == kept_one_by_one(labels, size)


@given(
    tasks=st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=30), min_size=2, max_size=4),
    size=st.integers(2, 20),
)
def test_class_after_class_each_keeps_its_first_samples(tasks: list[list[int]], size: int) -> None:
    """The authors' public code keeps the first ⌊size/classes⌋ of each class, if it has so many."""
    labels = [2 * task + label for task, drawn in enumerate(tasks) for label in drawn]
    kept = kept_by_the_policy(labels, size, 8)
    assert len(kept) == min(size, len(labels))
    share = size // len(set(labels))
    for c in set(labels):
        first = [i for i, label in enumerate(labels) if label == c][:share]
        assert set(first) <= set(kept)


def test_a_full_class_takes_nothing_more() -> None:
    labels = [0, 0, 0, 1, 1, 1, 0, 1, 0, 1]
    assert kept_by_the_policy(labels, 4, 3) == [0, 1, 3, 4]


def test_remaining_slots_go_to_the_first_classes() -> None:
    labels = [0] * 9 + [1] * 9 + [2] * 9
    assert kept_by_the_policy(labels, 8, 5) == [0, 1, 2, 9, 10, 11, 18, 19]


def test_greedy_draws_no_random_number() -> None:
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    memory = Memory(2, (1, 1, 1), {}, GreedyBalanced())
    y = torch.arange(6)
    memory.offer(generator, x=torch.zeros(6, 1, 1, 1), y=y, task=y)
    assert torch.equal(generator.get_state(), before)
