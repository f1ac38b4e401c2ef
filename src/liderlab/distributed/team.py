"""The processes (ranks) that share a run, one device each.

Every rank draws the same rows with the same generators and keeps its part of them (`share`). Values
that must not depend on a rank's own part go through one of the messages below, which all ranks send
and receive in the same order:

=========== ================================ ======================================================
message     on                               for
=========== ================================ ======================================================
`total`     tensors of the device            gradients, loss terms, counts: their sum, bit for bit
                                             the same everywhere
`gather`    rows of a batch, as bytes        rows that are written into the memory
`join`      features, with their gradient    LiDER's batch form, synchronised BatchNorm
`broadcast` tensors of the device            rank 0's values on all ranks
`agree`     numbers of the host              decisions (stop, save): the largest number holds
`add`       a number of the host             counts that decide: their sum
=========== ================================ ======================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class RankLost(RuntimeError):
    """Another process of the run has ended, or does not answer."""


class OutOfStep(RuntimeError):
    """The ranks differ in their state or in their next message."""


class Team:
    """`size` ranks, of which this process is one. A team of one sends nothing and copies nothing.

    control: the group for messages between hosts, if the default group is for GPUs.

    >>> team = Team()
    >>> team.share(5), team.agree(0, 1)
    (slice(0, 5, None), [0, 1])
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size
        self.control: dist.ProcessGroup | None = None

    def __deepcopy__(self, memo: Any) -> Team:
        return self  # copies of a network share the team

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, which writes the run's folder and reports errors."""
        return self.rank == 0

    def share(self, rows: int, rank: int | None = None) -> slice:
        """A rank's part of `rows` rows: consecutive, of nearly equal size.

        At least two rows, as BatchNorm cannot normalise a single one; the last ranks may get none.

        >>> [Team(rank, 3).share(5) for rank in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 5, None)]
        """
        rank = self.rank if rank is None else rank
        working = max(1, min(self.size, rows // 2))
        if rank >= working:
            return slice(rows, rows)
        return slice(rows * rank // working, rows * (rank + 1) // working)

    def total(self, *tensors: Tensor) -> None:
        """Replace each tensor by its sum over the ranks; one message per dtype."""
        if self.size == 1:
            return
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            alike = [tensor for tensor in tensors if tensor.dtype == dtype]
            flat = torch.cat([tensor.flatten() for tensor in alike])
            with _messages():
                dist.all_reduce(flat)
            parts = flat.split([tensor.numel() for tensor in alike])
            for tensor, part in zip(alike, parts, strict=True):
                tensor.copy_(part.view_as(tensor))

    def broadcast(self, *tensors: Tensor) -> None:
        """Replace each tensor by rank 0's."""
        if self.size > 1:
            for tensor in tensors:
                whole = tensor.contiguous()
                with _messages():
                    dist.broadcast(whole, 0)
                tensor.copy_(whole)

    def gather(self, rows: Mapping[str, Tensor], total: int) -> dict[str, Tensor]:
        """The rows of all ranks, in order, to the bit. rows: this rank's `share` of `total`."""
        if self.size == 1:
            return dict(rows)
        packed = torch.cat([_as_bytes(column) for column in rows.values()], 1)
        parts = [self.share(total, rank) for rank in range(self.size)]
        whole = self._collect(packed, [part.stop - part.start for part in parts])
        widths = [_row_bytes(column) for column in rows.values()]
        columns = zip(rows.items(), whole.split(widths, 1), strict=True)
        return {
            name: part.contiguous().view(column.dtype).reshape(total, *column.shape[1:])
            for (name, column), part in columns
        }

    def join(self, rows: Tensor, counts: Sequence[int] | None = None) -> Tensor:
        """The rows (n, …) of all ranks, differentiable: gradients sum over the losses of all ranks.

        counts: rows per rank; None: the ranks exchange them first.
        """
        if self.size == 1:
            return rows
        if counts is None:
            mine = [0] * self.size
            mine[self.rank] = len(rows)
            counts = self.agree(*mine)
        joined: Tensor = _Join.apply(rows, self, counts)  # type: ignore[no-untyped-call]
        return joined

    def _collect(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all ranks in their order; each sends max(counts) rows, padded with zeros."""
        most = max(counts)
        sent = rows.new_zeros(most, *rows.shape[1:])
        sent[: len(rows)] = rows
        received = [torch.empty_like(sent) for _ in counts]
        with _messages():
            dist.all_gather(received, sent)
        return torch.cat([part[:count] for part, count in zip(received, counts, strict=True)])

    def agree(self, *numbers: int) -> list[int]:
        """The largest of each number over the ranks, exchanged between the hosts."""
        if self.size == 1:
            return list(numbers)
        message = torch.tensor(numbers, dtype=torch.int64)
        with _messages():
            dist.all_reduce(message, dist.ReduceOp.MAX, group=self.control)
        return message.tolist()

    def add(self, number: int) -> int:
        """The sum of the numbers of all ranks, exchanged between the hosts."""
        if self.size == 1:
            return number
        message = torch.tensor([number], dtype=torch.int64)
        with _messages():
            dist.all_reduce(message, group=self.control)
        return int(message)

    def check_same(self, what: str, digest: int) -> None:
        """Raise OutOfStep unless all ranks have the same digest (below 2⁶³)."""
        largest, smallest = self.agree(digest, -digest)
        if largest != -smallest:
            raise OutOfStep(f"{what} is not the same on all ranks")

    def gather_objects(self, item: Any) -> list[Any]:
        """The objects of all ranks, in their order."""
        if self.size == 1:
            return [item]
        items: list[Any] = [None] * self.size
        with _messages():
            dist.all_gather_object(items, item, group=self.control)
        return items


class _Join(torch.autograd.Function):
    """Forward: the rows of all ranks. Backward: the gradient of this rank's rows, summed."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, team: Team, counts: Sequence[int]) -> Tensor:
        start = sum(counts[: team.rank])
        ctx.team, ctx.mine = team, slice(start, start + len(rows))
        return team._collect(rows.contiguous(), counts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        ctx.team.total(gradient)
        return gradient[ctx.mine], None, None


def _row_bytes(column: Tensor) -> int:
    return prod(column.shape[1:]) * column.element_size()


def _as_bytes(column: Tensor) -> Tensor:
    """(n, …) as (n, bytes of a row), the same bits."""
    rows = column.detach().contiguous().reshape(len(column), prod(column.shape[1:]))
    return rows.view(torch.uint8)


@contextmanager
def _messages() -> Iterator[None]:
    """Turn the failure of a message into RankLost."""
    try:
        yield
    except RuntimeError as error:
        raise RankLost(str(error).splitlines()[0]) from error
