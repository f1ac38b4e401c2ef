"""Who enters a memory with equal shares for all classes, at the same price whatever its size."""

from __future__ import annotations

import heapq
from array import array

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Keys = NDArray[np.float64]


class Shares:
    """The stored samples of every class, the smallest key first to go.

    A sample's rank is the number of stored samples of its class with a larger key. What is kept of
    all that was ever offered are the `size` lowest ranks, between equal ranks the larger keys.
    Since a sample that has fallen behind never comes back, this is the same as one by one: a sample
    enters, and if there is no room the largest class gives up its smallest key (of several largest
    classes, the one whose smallest key is the smallest).

    Each class is a heap of keys, so a sample costs O(log(size) + classes); 16 bytes each.

    y, key: (n,) of the samples in slots 0 … n−1.
    """

    def __init__(self, y: Numbers, key: Keys) -> None:
        self._counts = np.bincount(y).astype(np.int64)
        self._worst = np.full(len(self._counts), np.inf)
        self._heaps: list[Heap] = []
        order = np.lexsort((key, y))  # by class, and within it in ascending order: a heap
        for c, end in enumerate(self._counts.cumsum()):
            members = order[end - self._counts[c] : end]
            self._heaps.append(Heap(key[members], members))
            self._worst[c] = self._heaps[c].smallest
        self.total = len(y)

    def admit(self, y: Numbers, key: Keys, size: int) -> tuple[Numbers, list[int]]:
        """Which rows enter, in order, and the slots that are vacated for them.

        The rows themselves are counted once they are stored: `add`.
        """
        self._know(y)
        if self.total + len(y) <= size:
            return np.arange(len(y)), []
        coming = np.arange(len(y)) if self.total < size else np.flatnonzero(self._ahead(y, key))
        coming = coming if size else coming[:0]
        new: dict[int, list[tuple[float, int]]] = {}  # of each class, the rows that are in so far
        vacated, rejected, total = [], set(), self.total
        for row in coming.tolist():
            c = int(y[row])
            heapq.heappush(new.setdefault(c, []), (float(key[row]), row))
            self._counts[c] += 1
            self._worst[c] = min(self._worst[c], key[row])
            total += 1
            if total > size:
                c = self._giver()
                rows = new.get(c, [])
                if rows and rows[0][0] < self._heaps[c].smallest:
                    rejected.add(heapq.heappop(rows)[1])
                else:
                    vacated.append(self._heaps[c].pop())
                self._counts[c] -= 1
                self._worst[c] = min(self._heaps[c].smallest, rows[0][0] if rows else np.inf)
                total -= 1
        for c, rows in new.items():
            self._counts[c] -= len(rows)
            self._worst[c] = self._heaps[c].smallest
        self.total -= len(vacated)
        return np.array([r for r in coming.tolist() if r not in rejected], np.int64), vacated

    def add(self, slots: Numbers, y: Numbers, key: Keys) -> None:
        """These samples have been stored, under these labels."""
        self._know(y)
        for slot, c, value in zip(slots.tolist(), y.tolist(), key.tolist(), strict=True):
            self._heaps[c].push(value, slot)
            self._counts[c] += 1
            self._worst[c] = self._heaps[c].smallest
        self.total += len(slots)

    def _know(self, y: Numbers) -> None:
        """Room for classes that have not been seen before."""
        if (more := int(y.max(initial=-1)) + 1 - len(self._heaps)) > 0:
            self._heaps += [Heap(np.zeros(0), np.zeros(0, np.int64)) for _ in range(more)]
            self._counts = np.append(self._counts, np.zeros(more, np.int64))
            self._worst = np.append(self._worst, np.full(more, np.inf))

    def _giver(self) -> int:
        """The class that gives up a sample."""
        largest = self._counts == self._counts.max()
        return int(np.where(largest, self._worst, np.inf).argmin())

    def _ahead(self, y: Numbers, key: Keys) -> NDArray[np.bool_]:
        """Mask of the rows that may enter a full memory; the others are behind all it holds."""
        giver = self._giver()
        last_rank, last_key = self._counts[giver] - 1, self._worst[giver]
        rank = self._counts[y]  # of a row with a smaller key than its class holds
        behind = (rank > last_rank) | ((rank == last_rank) & (key < last_key))
        return ~(behind & (key < self._worst[y]))


class Heap:
    """Slots by key, the smallest first: two plain arrays (tuples would take 8 times the memory).

    keys: ascending.
    """

    __slots__ = ("_keys", "_slots")

    def __init__(self, keys: Keys, slots: Numbers) -> None:
        self._keys, self._slots = array("d", keys.tobytes()), array("q", slots.tobytes())

    @property
    def smallest(self) -> float:
        return self._keys[0] if self._keys else np.inf

    def push(self, key: float, slot: int) -> None:
        self._keys.append(key)
        self._slots.append(slot)
        place = len(self._keys) - 1
        while place and self._keys[above := (place - 1) // 2] > key:
            self._move(above, place)
            place = above
        self._keys[place], self._slots[place] = key, slot

    def pop(self) -> int:
        """Take out the smallest key; returns its slot."""
        top, key, slot = self._slots[0], self._keys.pop(), self._slots.pop()
        place, below, end = 0, 1, len(self._keys)
        while below < end:
            if below + 1 < end and self._keys[below + 1] < self._keys[below]:
                below += 1
            if self._keys[below] >= key:
                break
            self._move(below, place)
            place, below = below, 2 * below + 1
        if end:
            self._keys[place], self._slots[place] = key, slot
        return top

    def _move(self, source: int, target: int) -> None:
        self._keys[target], self._slots[target] = self._keys[source], self._slots[source]
