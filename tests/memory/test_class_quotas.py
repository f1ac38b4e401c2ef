"""Equal quotas against sorting all samples anew at each offer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from liderlab.functional.sampling import rank_in_class
from liderlab.memory import POLICIES, Memory, Poison
from liderlab.memory.buffer import Policy
from liderlab.memory.class_quotas import ClassQuotas
from liderlab.memory.policies import ClassBalanced, GreedyBalanced

BALANCED = [ClassBalanced(), GreedyBalanced()]
IDS = ["random", "greedy"]


def by_sorting(memory: Memory, y: Tensor, key: Tensor) -> Tensor:
    """The slots of offered rows, from the ranks of all stored and offered samples."""
    stored, n = memory.filled, len(y)
    all_y = torch.cat([memory.data["y"][:stored], y])
    all_key = torch.cat([memory.data["key"][:stored], key])
    by_key = all_key.argsort(descending=True)
    rank = rank_in_class(all_y, all_key)[by_key]
    stays = torch.zeros(stored + n, dtype=torch.bool)
    stays[by_key[rank.argsort(stable=True)[: memory.size]]] = True
    free = torch.cat([(~stays[:stored]).nonzero()[:, 0], torch.arange(stored, memory.size)])
    slots = torch.full((n,), -1)
    slots[stays[stored:]] = free[: int(stays[stored:].sum())]
    return slots


class BySorting:
    """The policy with the same keys that sorts everything anew at each offer."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.columns = policy, policy.columns

    def choose(
        self, memory: Memory, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        _, extra = self.policy.choose(Memory(0, (1, 1, 1), {}, self.policy), y, generator)
        if isinstance(self.policy, GreedyBalanced):
            extra = {"key": extra["key"] - memory.seen}
        return by_sorting(memory, y, extra["key"]), extra


def rows(y: Tensor) -> dict[str, Tensor]:
    return {"x": torch.zeros(len(y), 1, 1, 1, dtype=torch.uint8), "y": y, "task": y // 2}


@pytest.mark.parametrize("policy", BALANCED, ids=IDS)
@pytest.mark.parametrize("wrong", [0.0, 0.4], ids=["clean", "poisoned"])
@given(
    batches=st.lists(st.lists(st.integers(0, 5), max_size=12), max_size=12),
    size=st.integers(0, 14),
    seed=st.integers(0, 9999),
)
def test_every_row_gets_the_slot_that_sorting_gives(
    policy: Policy, wrong: float, batches: list[list[int]], size: int, seed: int
) -> None:
    def memory(policy: Policy) -> Memory:
        poison = Poison(wrong, [range(2), range(2, 4), range(4, 6)], seed)
        return Memory(size, (1, 1, 1), {}, policy, poison)

    fast, slow = memory(policy), memory(BySorting(policy))
    generators = [torch.Generator().manual_seed(seed) for _ in range(2)]
    for labels in batches:
        given_rows = rows(torch.tensor(labels, dtype=torch.int64))
        slots = fast.offer(generators[0], **given_rows)
        assert torch.equal(slots, slow.offer(generators[1], **given_rows))
    assert torch.equal(fast.data["y"], slow.data["y"])
    assert torch.equal(fast.data["key"], slow.data["key"])


@pytest.mark.parametrize("name", ["class-balanced", "greedy-balanced"])
def test_quotas_follow_an_updated_rebuilt_or_loaded_memory(name: str) -> None:
    """The choice equals sorting the memory as it is now."""
    memory, generator = Memory(12, (1, 1, 1), {}, POLICIES.load(name)()), torch.Generator()
    memory.offer(generator, **rows(torch.arange(20) % 3))
    memory.update(torch.arange(5), y=torch.full((5,), 4))
    memory.offer(generator, **rows(torch.arange(9) % 2))
    memory.rebuild(torch.arange(11, 2, -1))
    memory.offer(generator, **rows(torch.arange(9) % 5))
    again = Memory(12, (1, 1, 1), {}, POLICIES.load(name)())
    again.load_state_dict(memory.state_dict())
    offered = torch.arange(30) % 6
    expected = by_sorting(memory, offered, key := torch.rand(30, dtype=torch.float64))
    for each in (memory, again):
        enter, vacated = each.quotas.admit(offered.numpy(), key.numpy(), 12)
        assert enter.tolist() == (expected >= 0).nonzero()[:, 0].tolist()
        assert sorted(vacated) == sorted(expected[expected >= 0].tolist())


def test_rows_behind_all_stored_ones_touch_no_heap() -> None:
    """Rows that cannot enter a full memory are filtered out first."""
    quotas = ClassQuotas(np.arange(100) % 4, np.linspace(0.5, 1, 100))
    before = [heap[:] for heap in quotas._heaps]
    enter, vacated = quotas.admit(np.arange(1000) % 4, np.linspace(0, 0.4, 1000), 100)
    assert (len(enter), vacated) == (0, [])
    assert before == quotas._heaps
