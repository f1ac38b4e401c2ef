"""From a data set on disk to a stream of tasks, for all published benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ...errors import check_numbers
from ..augmentation import Augment
from ..splitting import SplitStream, split
from ..storage.cache import cached
from .catalogue import DATA_SETS
from .raw_data import RawData


def cached_stream(
    name: str,
    read: Callable[[Path, int], RawData],
    size: int,
    tasks: int,
    class_order: Sequence[int] | None,
    root: str | None,
    transform: Augment,
) -> SplitStream:
    """Locate a data set, decode it or open its cache, and split it by class."""
    check_numbers(size=size, at_least=4, at_most=10**4, whole=True)
    data = cached(name, DATA_SETS[name].locate(root), size, read, root=root)
    return split(data.train, data.test, tasks, class_order, names=data.names, transform=transform)
