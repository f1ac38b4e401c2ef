"""The memory's storage: rows are read as written, and never exceed its size."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from liderlab.memory import POLICIES, Column, Memory
from liderlab.memory.buffer import digest
from liderlab.memory.policies import ClassBalanced, Reservoir

SHAPE = (2, 3, 3)
FROM_STREAM = [name for name in POLICIES if name != "herding"]  # that one is filled by `rebuild`
COLUMNS = {"logits": Column((4,)), "edits": Column((), torch.int64)}


class Scripted:
    """A policy with slots fixed by the test."""

    def __init__(self, slots: list[int]) -> None:
        self.columns = {"origin": Column((), torch.int64)}
        self.slots = torch.tensor(slots)

    def choose(self, memory: Memory, y: Tensor, generator: Any) -> tuple[Tensor, dict[str, Tensor]]:
        return self.slots[: len(y)], {"origin": 100 + torch.arange(len(y))}


def rows(n: int, start: int = 0) -> dict[str, Tensor]:
    """n samples, each recognisable by its number in every column."""
    number = torch.arange(start, start + n)
    return {
        "x": (number % 256).to(torch.uint8).reshape(-1, 1, 1, 1).expand(-1, *SHAPE).clone(),
        "y": number % 5,
        "task": number % 3,
        "logits": number[:, None] + torch.arange(4) / 10,
        "edits": number,
    }


def filled(size: int, n: int, seed: int = 0, policy: str = "reservoir") -> Memory:
    memory = Memory(size, SHAPE, COLUMNS, POLICIES.load(policy)())
    memory.offer(torch.Generator().manual_seed(seed), **rows(n))
    return memory


def assert_whole_rows(memory: Memory, index: Tensor) -> Tensor:
    """Every column of a slot is of the same sample; returns the samples' numbers."""
    read = memory.rows(index)
    number = read["edits"]
    expected = rows(int(number.max()) + 1 if len(number) else 0)
    for name, column in expected.items():
        assert torch.equal(read[name], column[number].to(read[name].dtype)), name
    return number


def test_columns_have_the_shape_and_type_they_were_declared_with() -> None:
    memory = Memory(7, SHAPE, COLUMNS, ClassBalanced())
    assert {name: (tuple(c.shape), c.dtype) for name, c in memory.data.items()} == {
        "x": ((7, *SHAPE), torch.uint8),
        "y": ((7,), torch.int64),
        "task": ((7,), torch.int64),
        "logits": ((7, 4), torch.float32),
        "edits": ((7,), torch.int64),
        "key": ((7,), torch.float64),
    }


@pytest.mark.parametrize("policy", FROM_STREAM)
@given(
    size=st.integers(0, 12),
    batches=st.lists(st.integers(0, 9), max_size=6),
    seed=st.integers(0, 999),
)
def test_rows_stay_whole_and_never_exceed_the_size(
    policy: str, size: int, batches: list[int], seed: int
) -> None:
    memory = Memory(size, SHAPE, COLUMNS, POLICIES.load(policy)())
    generator = torch.Generator().manual_seed(seed)
    held: dict[int, int] = {}
    for n in batches:
        slots = memory.offer(generator, **rows(n, memory.seen))
        first = memory.seen - n
        held.update({int(s): first + i for i, s in enumerate(slots) if s >= 0})
        assert len(memory) == min(size, memory.seen)
        assert all(len(column) == size for column in memory.data.values())
    assert memory.seen == sum(batches)
    numbers = assert_whole_rows(memory, torch.arange(len(memory)))
    assert {slot: int(number) for slot, number in enumerate(numbers)} == held


def test_the_last_of_several_rows_for_one_slot_stays() -> None:
    memory = Memory(3, SHAPE, COLUMNS, Scripted([1, 0, 1, -1, 0, 1]))
    slots = memory.offer(torch.Generator(), **rows(6))
    assert slots.tolist() == [-1, -1, -1, -1, 0, 1]  # only stored rows have a slot
    assert len(memory) == 2
    assert assert_whole_rows(memory, torch.arange(2)).tolist() == [4, 5]
    assert memory.data["origin"].tolist() == [104, 105, 0]  # the policy's own column goes along


def test_an_empty_offer_changes_nothing(differences: Callable[..., list[str]]) -> None:
    memory = filled(4, 9)
    before = memory.state_dict()
    assert memory.offer(torch.Generator(), **rows(0)).tolist() == []
    assert not differences(memory.state_dict(), before)


def test_missing_columns_of_a_new_row_are_zero() -> None:
    memory = Memory(4, SHAPE, COLUMNS, Scripted([0, 1, 2, 3]))
    memory.offer(torch.Generator(), **rows(4))
    memory.update(torch.arange(4), edits=torch.full((4,), 9))
    fresh = {name: column for name, column in rows(2, start=4).items() if name != "edits"}
    memory.policy = Scripted([3, 1])
    memory.offer(torch.Generator(), **fresh)
    assert memory.data["edits"].tolist() == [9, 0, 9, 0]
    memory.rebuild(torch.tensor([2]), **fresh)
    assert memory.data["edits"][:3].tolist() == [9, 0, 0]


def test_the_number_of_samples_seen_is_state() -> None:
    memory = filled(5, 1000)
    again = Memory(5, SHAPE, COLUMNS, Reservoir())
    again.load_state_dict(memory.state_dict())
    assert again.seen == 1000
    slots = torch.cat([again.offer(torch.Generator().manual_seed(i), **rows(1)) for i in range(9)])
    assert (slots == -1).all()  # the odds are 5 in 1001, not 1: the counter came along


@pytest.mark.parametrize("policy", FROM_STREAM)
def test_a_loaded_memory_continues_like_the_saved_one(
    policy: str, tmp_path: Any, differences: Callable[..., list[str]]
) -> None:
    memory = filled(6, 25, policy=policy)
    torch.save(memory.state_dict(), tmp_path / "memory.pt")
    again = Memory(6, SHAPE, COLUMNS, POLICIES.load(policy)())
    again.load_state_dict(torch.load(tmp_path / "memory.pt", weights_only=True))
    for each in (memory, again):
        each.offer(torch.Generator().manual_seed(7), **rows(9, 25))
    assert not differences(again.state_dict(), memory.state_dict())


def test_a_state_shares_the_memorys_storage() -> None:
    """And leaves out empty slots, which torch would save with a slice."""
    memory = filled(1000, 30)
    saved, column = memory.state_dict()["data"]["x"], memory.data["x"]
    assert saved.data_ptr() == column.data_ptr()
    assert saved.untyped_storage().nbytes() == 30 * 18


def test_a_state_holds_only_filled_slots() -> None:
    assert len(filled(1000, 3).state_dict()["data"]["x"]) == 3


def test_update_writes_the_named_columns_of_the_named_slots() -> None:
    memory = filled(6, 6)
    before = {name: column.clone() for name, column in memory.data.items()}
    memory.update(torch.tensor([4, 1]), logits=torch.tensor([[4.0] * 4, [1.0] * 4]))
    assert memory.data["logits"][[1, 4]].tolist() == [[1.0] * 4, [4.0] * 4]
    rest = torch.tensor([0, 2, 3, 5])
    assert torch.equal(memory.data["logits"][rest], before["logits"][rest])
    assert all(torch.equal(memory.data[n], before[n]) for n in before if n != "logits")


def test_rebuild_keeps_slots_in_order_and_appends_rows() -> None:
    memory = filled(6, 6)
    memory.rebuild(torch.tensor([5, 0, 3]), **rows(2, start=7))
    assert len(memory) == 5
    assert assert_whole_rows(memory, torch.arange(5)).tolist() == [5, 0, 3, 7, 8]
    memory.rebuild(torch.tensor([4]))
    assert len(memory) == 1
    assert assert_whole_rows(memory, torch.arange(1)).tolist() == [8]


def test_rebuild_refuses_too_many_rows() -> None:
    memory = filled(6, 6)
    with pytest.raises(ValueError, match="at most 6 rows, but got 7"):
        memory.rebuild(torch.arange(5), **rows(2))


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="but got -1"):
        Memory(-1, SHAPE, {}, Reservoir())


@pytest.mark.parametrize("held", [0, 1, 6, 40])
@pytest.mark.parametrize("n", [0, 1, 6, 41])
def test_a_draw_is_of_different_filled_slots(held: int, n: int) -> None:
    memory = filled(60, held)
    slots = memory.draw(n, torch.Generator().manual_seed(0))
    assert len(slots) == len(slots.unique()) == min(n, held)
    assert (slots < held).all()


def test_rows_carry_their_slots_and_are_copies() -> None:
    memory = filled(6, 6)
    read = memory.rows(torch.tensor([3, 1]))
    assert read["slot"].tolist() == [3, 1]
    read["x"].zero_()
    read["y"].zero_()
    assert assert_whole_rows(memory, torch.arange(6)).tolist() == list(range(6))


@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's size from /proc")
@pytest.mark.parametrize("policy", ["reservoir", "class-balanced"])
def test_ram_is_within_five_percent_of_what_is_stored(policy: str) -> None:
    """The peak of a process that fills a memory of 200 MB twice over and takes its state."""
    program = f"""
import torch
from liderlab.memory import POLICIES, Memory

def size(what):
    line = next(l for l in open("/proc/self/status") if l.startswith(what))
    return int(line.split()[1]) * 1024
generator, slots = torch.Generator().manual_seed(0), 64_000
def offer(memory):
    y = torch.randint(20, (100,), generator=generator)
    memory.offer(generator, x=torch.zeros(100, 3, 32, 32, dtype=torch.uint8), y=y, task=y)
offer(warm := Memory(100, (3, 32, 32), {{}}, POLICIES.load({policy!r})()))
offer(warm)
before = size("VmRSS")
memory = Memory(slots, (3, 32, 32), {{}}, POLICIES.load({policy!r})())
for _ in range(2 * slots // 100):
    offer(memory)
state = memory.state_dict()
print((size("VmHWM") - before) / sum(column.nbytes for column in memory.data.values()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 0.9 < float(done.stdout) < 1.05


def test_empty_columns_with_other_strides_have_the_same_digest() -> None:
    """A method without memory has empty columns; torch gives some of them a stride of zero."""
    empty = torch.zeros((), dtype=torch.int64).expand(0)
    assert digest({"y": empty}) == digest({"y": torch.zeros(0, dtype=torch.int64)})
    assert digest({"y": empty}) != digest({"y": torch.zeros(0)})
