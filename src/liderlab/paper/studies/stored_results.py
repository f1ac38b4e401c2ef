"""An analysis's result from the plain values that were kept of it, for those who draw it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def revive(kind: type[T], tree: Mapping[str, Any]) -> T:
    """The result whose `to_dict()` this is: lists of numbers become arrays again.

    >>> from liderlab.analysis import HessianSpectrum
    >>> kept = {"eigenvalues": [2.0, 1.0], "trace": 3.0, "trace_error": 0.1, "parameters": 9}
    >>> revive(HessianSpectrum, kept).eigenvalues.max()
    np.float64(2.0)
    """
    return kind(**{name: _array(value) for name, value in tree.items()})


def _array(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    lengths = {len(item) for item in value if isinstance(item, list)}
    if len(lengths) > 1:  # one array for every task, each of its own length
        return [np.array(item) for item in value]
    array = np.array(value)
    return array.astype(float) if array.dtype == object else array  # None was NaN
