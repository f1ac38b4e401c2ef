"""BatchNorm's statistics: held still, kept the same on all ranks, or taken over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..errors import UserError
from .team import Team


class SharedBatchNorm(_BatchNorm):
    """BatchNorm over the rows of all ranks, as if one process had them all.

        N = Σ_r n_r,  μ = Σ_r n_r μ_r / N,  σ² = 1/N Σ_r [ S_r + n_r (μ_r − μ)² ]

    n_r, μ_r and S_r (the sum of squares around μ_r) of a rank's own rows are one small message per
    layer and pass, another one backwards. torch's own SyncBatchNorm is for GPUs only.
    """

    counts = True
    """Whether this rank's rows count; blank ones do not."""

    def __init__(self, like: _BatchNorm, team: Team) -> None:
        super().__init__(
            like.num_features, like.eps, like.momentum, like.affine, like.track_running_stats
        )
        self.team = team
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self, name, getattr(like, name))
        self.train(like.training)

    def _check_input_dim(self, input: Tensor) -> None:
        """Any number of dimensions will do."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        x = input if input.dtype == torch.float64 else input.float()
        around = (1, -1, *[1] * (x.dim() - 2))
        mean, variance, rows = self._statistics(x)
        if self.track_running_stats:
            self._move(mean.detach(), variance.detach(), rows.detach())
        x = (x - mean.reshape(around)) * (variance + self.eps).rsqrt().reshape(around)
        if self.affine:
            x = x * self.weight.reshape(around) + self.bias.reshape(around)
        return x.to(input.dtype)

    def _statistics(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """μ and σ² (c,) over all ranks, and N."""
        over = [d for d in range(x.dim()) if d != 1]
        square, mean = torch.var_mean(x, over, correction=0)
        own = x.new_full((1,), x.numel() // x.shape[1] if self.counts else 0)
        message = torch.cat([own, mean, square])[None]
        everybody = self.team.join(message, [1] * self.team.size)
        rows, means, squares = everybody.split([1, len(mean), len(mean)], 1)
        share = rows / rows.sum()
        mean = (share * means).sum(0)
        variance = (share * (squares + (means - mean).square())).sum(0)
        return mean, variance, rows.sum()

    def _move(self, mean: Tensor, variance: Tensor, rows: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        how_far = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
        unbiased = variance * (rows / (rows - 1))
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), how_far)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), how_far)


def share_batch_norm(network: nn.Module, team: Team) -> None:
    """Let every BatchNorm of a network, which nobody has hooked into yet, work over all ranks."""
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm):
                if type(child).forward is not _BatchNorm.forward:  # what it adds would be lost
                    kind = type(child).__name__
                    raise UserError(
                        f"{kind} does more than normalise and cannot be shared: --strategy ddp"
                    )
                setattr(parent, name, SharedBatchNorm(child, team))


def _moving(network: nn.Module) -> list[_BatchNorm]:
    return [
        module
        for module in network.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats and module.training
    ]


@contextmanager
def frozen_statistics(network: nn.Module) -> Iterator[None]:
    """BatchNorm normalises as it would, but its running statistics do not move."""
    moving = _moving(network)
    for module in moving:
        module.track_running_stats = False
    try:
        yield
    finally:
        for module in moving:
            module.track_running_stats = True


@contextmanager
def idle(network: nn.Module) -> Iterator[None]:
    """What passes counts for nothing: only the number of passes goes up, as on the other ranks."""
    shared = [module for module in network.modules() if isinstance(module, SharedBatchNorm)]
    own = [module for module in _moving(network) if not isinstance(module, SharedBatchNorm)]
    for norm in shared:
        norm.counts = False
    for module in own:
        module.track_running_stats = False
    try:
        yield
    finally:
        for norm in shared:
            norm.counts = True
        for module in own:
            module.track_running_stats = True
            assert module.num_batches_tracked is not None
            module.num_batches_tracked.add_(1)


def average_statistics(network: nn.Module, team: Team, weight: float) -> None:
    """Running statistics that every rank has moved by its own rows, made the same on all.

    weight: this rank's share of the rows.
    """
    moved = [m for m in _moving(network) if not isinstance(m, SharedBatchNorm)]
    buffers = [b for m in moved for b in (m.running_mean, m.running_var) if b is not None]
    for buffer in buffers:
        buffer.mul_(weight)
    team.total(*buffers)
