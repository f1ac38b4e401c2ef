"""Metrics of a run, computed from its accuracy matrix or from its accuracies during training.

matrix: (T, T) in percent, a[t, i] = accuracy on task i after training task t; NaN where it was not
measured. A metric that needs such an entry is NaN too.
curve: (n, T) in percent, accuracy on each task at n moments of training; NaN for tasks not seen
yet. task: (n,), the task in training at each moment, or just trained.
"""

import torch
from torch import Tensor


def final_average_accuracy(matrix: Tensor, weights: Tensor | None = None) -> float:
    """FAA = Σ_i w_i a_i^{T−1} / Σ_i w_i, (T,) weights; None: all tasks weigh the same.

    With the number of test images of each task as weights, every image weighs the same.

    >>> final_average_accuracy(torch.tensor([[60.0, 80.0]]), torch.tensor([3, 1]))
    65.0
    """
    return _average(matrix[-1], weights)


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


def average_incremental_accuracy(matrix: Tensor, weights: Tensor | None = None) -> float:
    """AIA = mean over t of mean_{i≤t} a_i^t; weights as in FAA, within each t."""
    rows = [_average(row[: t + 1], weights) for t, row in enumerate(matrix)]
    return float(torch.tensor(rows, dtype=matrix.dtype).mean())


def _average(accuracies: Tensor, weights: Tensor | None) -> float:
    if weights is None:
        return float(accuracies.mean())
    w = weights[: len(accuracies)].to(accuracies)
    return float((w * accuracies).sum() / w.sum())


def minimum_accuracy(curve: Tensor, task: Tensor) -> float:
    """min-ACC = 1/(T−1) Σ_{i<T−1} min_{n: task_n > i} a_i^n, the lowest accuracy on each task since
    it has been learned (De Lange et al., 2023).

    >>> curve = torch.tensor([[90.0, float("nan")], [20.0, 50.0], [60.0, 80.0]])
    >>> minimum_accuracy(curve, torch.tensor([0, 1, 1]))
    20.0
    """
    later = task[:, None] > torch.arange(curve.shape[1])
    lowest = torch.where(later, curve, torch.inf).amin(0)
    return float(lowest.where(later.any(0), torch.nan)[:-1].mean())


def worst_case_accuracy(curve: Tensor, task: Tensor) -> float:
    """WC-ACC = 1/T a_{T−1} + (1 − 1/T) min-ACC, with a_{T−1} at the last moment."""
    tasks = curve.shape[1]
    now = float(curve[-1, -1])
    return now if tasks == 1 else now / tasks + (1 - 1 / tasks) * minimum_accuracy(curve, task)


def average_anytime_accuracy(curve: Tensor) -> float:
    """AAA = mean over n of the mean accuracy on the tasks seen at that moment."""
    return float(curve.nanmean(1).mean())
