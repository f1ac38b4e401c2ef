"""From a data set on the disk to a stream of tasks: the way that all published benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ...errors import check_numbers
from ..augmentation import Augment
from ..splitting import SplitStream, split
from ..storage.cache import cached
from .catalogue import DATA_SETS
from .reader import Reading


def split_published(
    data: str,
    read: Callable[[Path, int], Reading],
    size: int,
    tasks: int,
    class_order: Sequence[int] | None,
    root: str | None,
    transform: Augment,
) -> SplitStream:
    """Find the data set, or say how to get it; decode it, or take the cache; split it by class."""
    check_numbers(size=size, at_least=4, at_most=10**4, whole=True)
    source = DATA_SETS[data].locate(root)
    ready = cached(data, source, size, read, root=root)
    return split(
        ready.train, ready.test, tasks, class_order, names=ready.names, transform=transform
    )
