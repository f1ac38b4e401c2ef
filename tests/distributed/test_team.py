"""A rank's share of the rows; a team of one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liderlab.distributed.team import Team
from liderlab.memory.buffer import digest


@given(rows=st.integers(0, 70), size=st.integers(1, 9))
def test_shares_are_the_rows_one_after_the_other(rows: int, size: int) -> None:
    shares = [Team(rank, size).share(rows) for rank in range(size)]
    assert [i for share in shares for i in range(rows)[share]] == list(range(rows))
    assert shares == [Team(0, size).share(rows, rank) for rank in range(size)]


@given(rows=st.integers(2, 70), size=st.integers(1, 9))
def test_no_rank_has_a_single_row(rows: int, size: int) -> None:
    sizes = [len(range(rows)[Team(rank, size).share(rows)]) for rank in range(size)]
    working = [n for n in sizes if n]
    assert min(working) >= 2
    assert max(working) - min(working) <= 1
    assert len(working) == min(size, rows // 2)
    assert sizes == working + [0] * (size - len(working))


def test_a_team_of_one_changes_nothing() -> None:
    team, rows = Team(), torch.rand(3, 2, requires_grad=True)
    assert team.join(rows) is rows
    assert team.gather({"x": rows}, 3)["x"] is rows
    assert team.agree(4, 0) == [4, 0]
    assert team.gather_objects("word") == ["word"]
    value = torch.tensor(2.0)
    team.total(value)
    team.broadcast(value)
    team.check_same("anything", 5)
    assert value == 2
    assert team.leads


@pytest.mark.parametrize(
    "other",
    [
        {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([True])},
        {"a": torch.tensor([[1.0], [3.0]]), "b": torch.tensor([True])},
        {"a": torch.tensor([1.0, 3.0]), "b": torch.tensor([False])},
        {"a": torch.tensor([1.0, 3.0]).double(), "b": torch.tensor([True])},
    ],
    ids=["value", "shape", "another tensor", "type"],
)
def test_a_digest_depends_on_every_bit(other: dict[str, torch.Tensor]) -> None:
    one = {"a": torch.tensor([1.0, 3.0]), "b": torch.tensor([True])}
    assert digest(one) == digest({name: tensor.clone() for name, tensor in one.items()})
    assert digest(one) != digest(other)
    assert 0 <= digest(other) < 2**63
