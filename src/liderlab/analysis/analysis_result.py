"""The base class of every analysis's result: plain values out, plain values in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Self

import numpy as np  # and no torch: a process whose memory is measured must start small


class AnalysisResult:
    """A frozen dataclass of plain numbers and numpy arrays, ready for a figure or for JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts and lists of Python numbers; NaN becomes None."""
        plain: dict[str, Any] = _plain(self)
        return plain

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`, for results without nested results: lists become arrays.

        >>> from liderlab.analysis import HessianSpectrum
        >>> kept = {"eigenvalues": [2.0, 1.0], "trace": 3.0, "trace_error": 0.1, "parameters": 9}
        >>> HessianSpectrum.from_dict(kept).eigenvalues.max()
        np.float64(2.0)
        """
        return cls(**{name: _array(value) for name, value in tree.items()})


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    return None if isinstance(value, float) and value != value else value


def _array(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    lengths = {len(item) for item in value if isinstance(item, list)}
    if len(lengths) > 1:  # one array per task, of different lengths
        return [np.array(item) for item in value]
    array = np.array(value)
    return array.astype(float) if array.dtype == object else array  # None becomes NaN
