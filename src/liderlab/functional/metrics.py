"""Metrics of a run, computed from its accuracy matrix.

matrix: (T, T) in percent, a[t, i] = accuracy on task i after training task t; NaN where it was not
measured. A metric that needs such an entry is NaN too.
"""

import torch
from torch import Tensor


def final_average_accuracy(matrix: Tensor) -> float:
    """FAA = mean_i a_i^{T−1}."""
    return float(matrix[-1].mean())


def final_forgetting(matrix: Tensor) -> float:
    """FF = 1/(T−1) Σ_{i<T−1} max_{t≤T−2} (a_i^t − a_i^{T−1}).

    The maximum is over the tasks t ≥ i after which i was measured: accuracy before the task's own
    training cannot be forgotten.

    >>> final_forgetting(torch.tensor([[90.0, float("nan")], [60.0, 80.0]]))
    30.0
    """
    earlier, last = matrix[:-1, :-1], matrix[-1, :-1]
    counts = torch.ones_like(earlier, dtype=torch.bool).tril() & ~earlier.isnan()
    best = earlier.where(counts, -torch.inf).amax(0) if len(earlier) else last
    return float((best.where(counts.any(0), torch.nan) - last).mean())


def backward_transfer(matrix: Tensor) -> float:
    """BWT = 1/(T−1) Σ_{i<T−1} (a_i^{T−1} − a_i^i)."""
    return float((matrix[-1, :-1] - matrix.diagonal()[:-1]).mean())


def forward_transfer(matrix: Tensor, untrained: Tensor) -> float:
    """FWT = 1/(T−1) Σ_{i>0} (a_i^{i−1} − b_i), b_i: accuracy of the untrained network, (T,)."""
    return float((matrix.diagonal(1) - untrained[1:]).mean())


def average_incremental_accuracy(matrix: Tensor) -> float:
    """AIA = mean over t of mean_{i≤t} a_i^t."""
    return float(torch.stack([matrix[t, : t + 1].mean() for t in range(len(matrix))]).mean())
