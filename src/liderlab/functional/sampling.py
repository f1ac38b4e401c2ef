"""Choosing samples: reservoir slots, draws, herding, CutMix; vectorised."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def reservoir_slots(seen: int, n: int, size: int, generator: torch.Generator) -> Tensor:
    """Slots for the next n samples of a stream, after `seen` earlier ones; −1: not stored.

    Sample i (from 0) enters with probability min(1, size/(i+1)) and replaces a uniform slot, so
    that at any time all samples so far are stored with the same probability (Vitter, 1985).

    >>> reservoir_slots(0, 4, 8, torch.Generator())
    tensor([0, 1, 2, 3])
    """
    place = torch.arange(seen, seen + n)
    drawn = (torch.rand(n, dtype=torch.float64, generator=generator) * (place + 1)).long()
    slots = torch.where(place < size, place, drawn)
    return torch.where(slots < size, slots, -1)


def keep_last(slots: Tensor) -> Tensor:
    """Mask of the last row for every slot ≥ 0: the rows that survive if all are written in order.

    >>> keep_last(torch.tensor([3, -1, 5, 3]))
    tensor([False, False,  True,  True])
    """
    order = slots.argsort(stable=True)
    ranked = slots[order]
    last = torch.ones_like(ranked, dtype=torch.bool)
    last[:-1] = ranked[:-1] != ranked[1:]
    mask = torch.empty_like(last)
    mask[order] = last
    return mask & (slots >= 0)


def keep_first(slots: Tensor) -> Tensor:
    """Mask of the first row for every slot ≥ 0.

    >>> keep_first(torch.tensor([3, -1, 5, 3]))
    tensor([ True, False,  True, False])
    """
    return keep_last(slots.flip(0)).flip(0)


def rank_in_class(y: Tensor, key: Tensor) -> Tensor:
    """Each row's rank (0: largest key) among the rows of its class.

    >>> rank_in_class(torch.tensor([0, 1, 0, 0]), torch.tensor([0.1, 0.5, 0.9, 0.3]))
    tensor([2, 0, 0, 1])
    """
    by_key = key.argsort(descending=True, stable=True)
    order = by_key[y[by_key].argsort(stable=True)]
    counts = torch.bincount(y)
    first = (counts.cumsum(0) - counts)[y[order]]
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(y)) - first
    return rank


def draw_without_replacement(n: int, size: int, generator: torch.Generator) -> Tensor:
    """n different numbers below `size` (all of them, shuffled, if n ≥ size), in O(n) for n ≪ size.

    >>> sorted(draw_without_replacement(3, 3, torch.Generator()).tolist())
    [0, 1, 2]
    """
    if 4 * n >= size:
        return torch.randperm(size, generator=generator)[:n]
    # Rejection: draw a few too many, keep the first n different ones in order of appearance.
    while True:
        drawn = torch.randint(size, (2 * n + 8,), generator=generator)
        first = np.flatnonzero(keep_first(drawn).numpy())
        if len(first) >= n:
            return drawn[torch.from_numpy(first[:n])]


def draw_balanced(y: Tensor, classes: int, n: int, generator: torch.Generator) -> Tensor:
    """At most n different rows of random classes, in equal shares as far as each class has rows.

    >>> rows = draw_balanced(torch.tensor([0, 0, 0, 1, 1, 2]), 2, 4, torch.Generator())
    >>> len(rows), len(set(rows.tolist()))
    (4, 4)
    """
    present = y.unique()
    picked = present[torch.randperm(len(present), generator=generator)[:classes]]
    rank = rank_in_class(y, torch.rand(len(y), generator=generator))
    rank = torch.where(torch.isin(y, picked), rank, len(y))
    share = -(-n // max(1, len(picked)))
    order = rank.argsort(stable=True)[:n]
    return order[rank[order] < share]


def herding_order(features: Tensor, n: int) -> Tensor:
    """The n rows of (m, d) whose running mean stays nearest to the mean of all, best first.

        p_k = argmin_x ‖μ − 1/k (φ(x) + Σ_{j<k} φ(p_j))‖      (iCaRL, Algorithm 4; no row twice)

    Every prefix of the order is the choice for a smaller n, so that a set shrinks by its tail.

    >>> herding_order(torch.tensor([[0.0], [1.0], [5.0], [6.0]]), 3)
    tensor([1, 2, 0])
    """
    features = features.double()
    mean = features.mean(0)
    # ‖kμ − S − φ‖² = ‖φ‖² − 2 φ·(kμ − S) + a term that is equal for all rows
    squares = features.square().sum(1)
    missing = mean.clone()  # kμ − S: the next row should be close to it
    order = torch.empty(min(n, len(features)), dtype=torch.int64, device=features.device)
    for k in range(len(order)):
        best = (squares - 2 * features @ missing).argmin()
        order[k] = best
        squares[best] = torch.inf
        missing += mean - features[best]
    return order


def cutmix(x: Tensor, alpha: float, generator: torch.Generator) -> tuple[Tensor, Tensor, float]:
    """Replace a box of every image by that of a partner in the batch (Yun et al., 2019).

    x: (n, C, H, W) → mixed images, each one's partner (n,), and the share λ of its own pixels. The
    box is the same for all: its area is 1 − λ' for λ' ~ Beta(α, α), its centre uniform. The image's
    border may cut the box, hence λ is counted from the pixels.

    >>> mixed, partner, share = cutmix(torch.rand(4, 3, 8, 8), 1.0, torch.Generator())
    >>> 0 <= share <= 1 and sorted(partner.tolist()) == [0, 1, 2, 3]
    True
    """
    height, width = x.shape[2:]
    partner = torch.randperm(len(x), generator=generator)
    seed = int(torch.randint(2**62, (), generator=generator))
    side = math.sqrt(1 - np.random.default_rng(seed).beta(alpha, alpha))  # torch draws no Beta
    row, column = (
        (torch.rand(2, generator=generator) * torch.tensor([height, width])).long().tolist()
    )
    half_height, half_width = int(height * side) // 2, int(width * side) // 2
    box = torch.zeros(height, width, dtype=torch.bool)
    rows = slice(max(0, row - half_height), row + half_height)
    columns = slice(max(0, column - half_width), column + half_width)
    box[rows, columns] = True
    partner, box = partner.to(x.device), box.to(x.device)
    return torch.where(box, x[partner], x), partner, 1 - float(box.double().mean())


def wrong_labels(
    y: Tensor,
    task: Tensor,
    classes: Sequence[Sequence[int]],
    probability: float,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Replace labels (n,) with this probability by another class of their task, uniformly.

    classes: of every task; a task of one class keeps its labels. Returns labels, and a mask (n,) of
    those that were replaced.

    >>> generator = torch.Generator().manual_seed(0)
    >>> wrong_labels(torch.tensor([2, 7]), torch.tensor([0, 0]), [(2, 7)], 1.0, generator)
    (tensor([7, 2]), tensor([True, True]))
    """
    hit, which = torch.rand(2, len(y), dtype=torch.float64, generator=generator)
    labels, replaced = y.clone(), torch.zeros(len(y), dtype=torch.bool)
    for index in task.unique().tolist():
        own = torch.tensor(classes[index])
        if len(own) < 2:
            continue
        rows = ((task == index) & (hit < probability)).nonzero()[:, 0]
        away = 1 + (which[rows] * (len(own) - 1)).long()  # 1 … n − 1 classes further, cyclically
        labels[rows] = own[(torch.searchsorted(own, y[rows]) + away) % len(own)]
        replaced[rows] = True
    return labels, replaced
