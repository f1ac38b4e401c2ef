"""Who enters a memory, who is drawn from it: odds and choices, vectorised."""

import torch
from torch import Tensor


def reservoir_slots(seen: int, n: int, size: int, generator: torch.Generator) -> Tensor:
    """Slots for the next n samples of a stream of which `seen` have passed; −1: not stored.

    Sample i (from 0) enters with probability min(1, size/(i+1)) and replaces a uniform slot, so
    that after every sample each one so far is stored with the same probability (Vitter, 1985).

    >>> reservoir_slots(0, 4, 8, torch.Generator())
    tensor([0, 1, 2, 3])
    """
    place = torch.arange(seen, seen + n)
    drawn = (torch.rand(n, dtype=torch.float64, generator=generator) * (place + 1)).long()
    slots = torch.where(place < size, place, drawn)
    return torch.where(slots < size, slots, -1)


def keep_last(slots: Tensor) -> Tensor:
    """Which rows survive if all are written in order: mask of the last row for every slot ≥ 0.

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
        flipped = drawn.flip(0)
        first = keep_last(flipped).flip(0)
        if int(first.sum()) >= n:
            return drawn[first][:n]
