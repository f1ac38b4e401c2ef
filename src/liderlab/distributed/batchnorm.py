"""BatchNorm's statistics: frozen, averaged over the ranks, or computed over all ranks."""

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

    Each rank sends n_r, μ_r and S_r / n_r of its own rows (S_r: the sum of squares around μ_r): one
    small message per layer and forward pass, and one per backward pass. torch's SyncBatchNorm is
    for GPUs only.
    """

    counts = True
    """Whether this rank's rows count; the blank rows of an idle rank do not."""

    def __init__(self, like: _BatchNorm, team: Team) -> None:
        super().__init__(
            like.num_features, like.eps, like.momentum, like.affine, like.track_running_stats
        )
        self.team = team
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self, name, getattr(like, name))
        self.train(like.training)

    def _check_input_dim(self, input: Tensor) -> None:
        """Accept any number of dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        x = input if input.dtype == torch.float64 else input.float()
        around = (1, -1, *[1] * (x.dim() - 2))
        mean, variance, rows = self._statistics(x)
        if self.track_running_stats:
            self._update_running(mean.detach(), variance.detach(), rows.detach())
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
        messages = self.team.join(message, [1] * self.team.size)
        rows, means, squares = messages.split([1, len(mean), len(mean)], 1)
        share = rows / rows.sum()
        mean = (share * means).sum(0)
        variance = (share * (squares + (means - mean).square())).sum(0)
        return mean, variance, rows.sum()

    def _update_running(self, mean: Tensor, variance: Tensor, rows: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        momentum = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
        unbiased = variance * (rows / (rows - 1))
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)


def share_batch_norm(network: nn.Module, team: Team) -> None:
    """Replace every BatchNorm of a network by one over all ranks; before any hook is attached."""
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm):
                if type(child).forward is not _BatchNorm.forward:  # its additions would be lost
                    kind = type(child).__name__
                    raise UserError(
                        f"{kind} does more than normalise and cannot be shared: use --strategy ddp"
                    )
                setattr(parent, name, SharedBatchNorm(child, team))


def _tracking(network: nn.Module) -> list[_BatchNorm]:
    """The BatchNorms that update running statistics in this mode."""
    return [
        module
        for module in network.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats and module.training
    ]


@contextmanager
def _not_tracking(modules: list[_BatchNorm]) -> Iterator[None]:
    for module in modules:
        module.track_running_stats = False
    try:
        yield
    finally:
        for module in modules:
            module.track_running_stats = True


@contextmanager
def frozen_statistics(network: nn.Module) -> Iterator[None]:
    """Normalise as in training, without updating the running statistics."""
    with _not_tracking(_tracking(network)):
        yield


@contextmanager
def idle(network: nn.Module) -> Iterator[None]:
    """For a rank without rows: leave the rows of its passes out of all statistics.

    A BatchNorm that is not shared only counts the batch, as on the other ranks.
    """
    shared = [module for module in network.modules() if isinstance(module, SharedBatchNorm)]
    own = [module for module in _tracking(network) if not isinstance(module, SharedBatchNorm)]
    for norm in shared:
        norm.counts = False
    try:
        with _not_tracking(own):
            yield
    finally:
        for norm in shared:
            norm.counts = True
        for module in own:
            assert module.num_batches_tracked is not None
            module.num_batches_tracked.add_(1)


def average_statistics(network: nn.Module, team: Team, weight: float) -> None:
    """Average over the ranks the running statistics that each has updated with its own rows.

    weight: this rank's share of the rows.
    """
    own = [m for m in _tracking(network) if not isinstance(m, SharedBatchNorm)]
    buffers = [b for m in own for b in (m.running_mean, m.running_var) if b is not None]
    for buffer in buffers:
        buffer.mul_(weight)
    team.total(*buffers)
