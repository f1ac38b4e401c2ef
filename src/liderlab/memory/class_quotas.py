"""Equal quotas for all classes: which samples enter a memory, and which leave for them."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Keys = NDArray[np.float64]
SLOT_BITS = 32
EMPTY = np.iinfo(np.int64).max  # stands for the smallest key of a class without samples


class ClassQuotas:
    """The stored samples of every class; the smallest key leaves first.

    A sample's rank is the number of stored samples of its class with a larger key. Of all samples
    ever offered, those with the `size` lowest ranks are kept; between equal ranks, those with the
    larger keys. A sample that has left never returns, so the same samples stay if they come one
    by one: each enters, and if the memory is then over-full, the largest class gives up its
    smallest key (of several largest classes, the one whose smallest key is the smallest).

    Each class is a heap, so a sample costs O(log(size) + classes). An entry is one integer, the
    key's order (`_ordered`) · 2³² + slot, which takes 56 bytes (a tuple: 131).

    y, key: (n,) of the samples in slots 0 … n−1.
    """

    def __init__(self, y: Numbers, key: Keys) -> None:
        self._heaps: list[list[int]] = []
        self._counts, self._smallest = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.total = 0
        self._add_classes(y)
        self.add(np.arange(len(y)), y, key)

    def admit(self, y: Numbers, key: Keys, size: int) -> tuple[Numbers, list[int]]:
        """The rows that enter, in order, and the slots that are vacated for them.

        Vacated slots are uncounted at once; entering rows count once they are stored (`add`).
        """
        self._add_classes(y)
        if self.total + len(y) <= size:
            return np.arange(len(y)), []
        order, total, vacated = _ordered(key), self.total, []
        rows = np.arange(len(y)) if total < size else np.flatnonzero(self._may_enter(y, order))
        entering: dict[int, list[int]] = {}  # a heap of rows for each class
        for row in rows.tolist() if size else []:
            c = int(y[row])
            heapq.heappush(entering.setdefault(c, []), _entry(int(order[row]), row))
            self._counts[c] += 1
            self._smallest[c] = min(self._smallest[c], order[row])
            total += 1
            if total > size:
                c = self._giving_class()
                stored, new = self._heaps[c], entering.get(c, [])
                if _smallest(new) < _smallest(stored):
                    heapq.heappop(new)
                else:
                    vacated.append(_slot(heapq.heappop(stored)))
                self._counts[c] -= 1
                self._smallest[c] = min(_smallest(stored), _smallest(new))
                total -= 1
        for c, new in entering.items():
            self._counts[c] -= len(new)
            self._smallest[c] = _smallest(self._heaps[c])
        self.total -= len(vacated)
        kept = sorted(_slot(entry) for new in entering.values() for entry in new)
        return np.array(kept, np.int64), vacated

    def add(self, slots: Numbers, y: Numbers, key: Keys) -> None:
        """Count samples that have been stored in these slots."""
        self._add_classes(y)
        for c, order, slot in zip(y.tolist(), _ordered(key).tolist(), slots.tolist(), strict=True):
            heapq.heappush(self._heaps[c], _entry(order, slot))
        self._counts += np.bincount(y, minlength=len(self._counts))
        for c in set(y.tolist()):
            self._smallest[c] = _smallest(self._heaps[c])
        self.total += len(slots)

    def _add_classes(self, y: Numbers) -> None:
        """Make room for classes that have not been seen before."""
        if (more := int(y.max(initial=-1)) + 1 - len(self._heaps)) > 0:
            self._heaps += [[] for _ in range(more)]
            self._counts = np.append(self._counts, np.zeros(more, np.int64))
            self._smallest = np.append(self._smallest, np.full(more, EMPTY))

    def _giving_class(self) -> int:
        """The class that gives up a sample."""
        largest = self._counts == self._counts.max()
        return int(np.where(largest, self._smallest, EMPTY).argmin())

    def _may_enter(self, y: Numbers, order: Numbers) -> NDArray[np.bool_]:
        """Mask of the rows that may enter a full memory; other rows rank behind all stored ones."""
        giving = self._giving_class()
        last_rank, last_key = self._counts[giving] - 1, self._smallest[giving]
        rank = self._counts[y]  # of a row whose key is smaller than all of its class
        behind = (rank > last_rank) | ((rank == last_rank) & (order < last_key))
        return ~(behind & (order < self._smallest[y]))


def _ordered(key: Keys) -> Numbers:
    """Integers in the order of the keys: a float's bits, those of a negative one reversed.

    >>> _ordered(np.array([-2.0, -1.0, 0.5, 1.0])).argsort().tolist()
    [0, 1, 2, 3]
    """
    bits = key.view(np.int64)
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def _entry(order: int, slot: int) -> int:
    return order << SLOT_BITS | slot


def _slot(entry: int) -> int:
    return entry & ((1 << SLOT_BITS) - 1)


def _smallest(heap: list[int]) -> int:
    return heap[0] >> SLOT_BITS if heap else EMPTY
