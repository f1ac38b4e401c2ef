"""BatchNorm over the rows of all ranks: alone it is BatchNorm; two ranks are in test_ranks."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from liderlab.distributed.batchnorm import (
    SharedBatchNorm,
    frozen_statistics,
    idle,
    share_batch_norm,
)
from liderlab.distributed.team import Team
from liderlab.errors import UserError

OPTIONS = [{}, {"momentum": None}, {"affine": False}, {"eps": 0.1}, {"track_running_stats": False}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (4, 3, 2, 2)], ids=str)
def test_alone_it_is_batch_norm(shape: tuple[int, ...], options: dict[str, object]) -> None:
    torch.manual_seed(0)
    kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}
    plain = kinds[len(shape)](3, **options).double()
    if plain.affine:
        nn.init.normal_(plain.weight)
        nn.init.normal_(plain.bias)
    network = nn.Sequential(copy.deepcopy(plain))
    share_batch_norm(network, Team())
    shared = network[0]
    assert isinstance(shared, SharedBatchNorm)
    for _ in range(3):
        x = (3 + torch.randn(shape, dtype=torch.float64)).requires_grad_()
        y = x.detach().clone().requires_grad_()
        weights = torch.randn(shape, dtype=torch.float64)
        (plain(x) * weights).sum().backward()
        (shared(y) * weights).sum().backward()
        torch.testing.assert_close(shared(y), plain(x))
        torch.testing.assert_close(y.grad, x.grad)
    torch.testing.assert_close(shared.state_dict(), plain.state_dict())
    plain.eval()
    network.eval()
    torch.testing.assert_close(shared(x), plain(x))


def test_a_norm_that_does_more_is_not_replaced() -> None:
    class Activated(nn.BatchNorm1d):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).relu()

    with pytest.raises(UserError, match="Activated does more than normalise"):
        share_batch_norm(nn.Sequential(Activated(2)), Team())


def test_rows_of_an_idle_rank_do_not_count() -> None:
    """On a rank without rows a BatchNorm of its own only counts that there was a pass."""
    network = nn.Sequential(nn.BatchNorm1d(2))
    before = copy.deepcopy(network.state_dict())
    with idle(network):
        network(torch.zeros(2, 2))
    after = network.state_dict()
    assert after.pop("0.num_batches_tracked") == before.pop("0.num_batches_tracked") + 1
    torch.testing.assert_close(after, before)
    with frozen_statistics(network), idle(network):
        network(torch.zeros(2, 2))
    assert network[0].num_batches_tracked == 1
