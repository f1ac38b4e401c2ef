"""Batches, sources and schedules."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from liderlab.types import Batch, Concat, MultiStep


class Numbers:
    """A source whose rows are numbered."""

    def __init__(self, first: int, n: int, *, slots: bool = False) -> None:
        self.first, self.n, self.slots = first, n, slots

    def __len__(self) -> int:
        return self.n

    def rows(self, index: Tensor) -> dict[str, Tensor]:
        assert ((index >= 0) & (index < self.n)).all()
        rows = {"x": self.first + index, "y": 10 * (self.first + index), "task": index * 0}
        return rows | ({"slot": index, "logits": index * 1.0} if self.slots else {})


def batch(n: int = 3) -> Batch:
    raw = torch.arange(n * 4, dtype=torch.uint8).reshape(n, 1, 2, 2)
    number = torch.arange(n)

    def view(pixels: Tensor) -> Tensor:
        return pixels.float().flip(3) / 2

    return Batch(view(raw), raw, number, number, number - 1, view, {"logits": number * 0.5})


def test_a_batch_is_as_long_as_its_rows_and_falsy_without_them() -> None:
    assert len(batch(3)) == 3
    assert batch(1)
    assert not batch(0)


def test_rows_with_a_slot_are_replayed() -> None:
    assert batch(3).replayed.tolist() == [False, True, True]


def test_other_pixels_go_through_the_same_view() -> None:
    one = batch()
    raw = one.raw.float() + 0.5
    other = one.replace(raw=raw)
    assert torch.equal(other.raw, raw)
    assert torch.equal(other.x, one.view(raw))
    assert torch.equal(one.replace(raw=one.raw).x, one.x)


def test_another_input_keeps_the_pixels() -> None:
    one = batch()
    other = one.replace(x=one.x * 2)
    assert torch.equal(other.x, one.x * 2)
    assert other.raw is one.raw
    for name in ("y", "task", "slot", "view", "columns"):
        assert getattr(other, name) is getattr(one, name)


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(sum),
    data=st.data(),
)
def test_sources_one_after_the_other(sizes: list[int], data: st.DataObject) -> None:
    starts = [100 * i for i in range(len(sizes))]
    sources = tuple(Numbers(first, n) for first, n in zip(starts, sizes, strict=True))
    joined = Concat(sources)
    flat = [first + i for first, n in zip(starts, sizes, strict=True) for i in range(n)]
    assert len(joined) == len(flat)
    index = data.draw(st.lists(st.integers(0, len(flat) - 1), max_size=12))
    rows = joined.rows(torch.tensor(index, dtype=torch.int64))
    assert rows["x"].tolist() == [flat[i] for i in index]
    assert rows["y"].tolist() == [10 * flat[i] for i in index]
    assert rows["slot"].tolist() == [-1] * len(index)


@pytest.mark.parametrize("index", [[0, 4, 1, 5], [4, 5], [0, 1]], ids=["both", "memory", "stream"])
def test_rows_say_which_source_they_come_from(index: list[int]) -> None:
    joined = Concat((Numbers(0, 4), Numbers(100, 4, slots=True)))
    rows = joined.rows(torch.tensor(index))
    assert rows["slot"].tolist() == [i - 4 if i >= 4 else -1 for i in index]
    # The same columns for every batch of an epoch, for any rows.
    assert set(rows) == {"x", "y", "task", "slot"}


@pytest.mark.parametrize(
    ("epoch", "factor"), [(0, 1), (1.9, 1), (2, 0.5), (2.7, 0.5), (4, 0.25), (99, 0.25)]
)
def test_multistep_counts_the_milestones_passed(epoch: float, factor: float) -> None:
    assert MultiStep((2, 4), 0.5)(epoch) == factor
