"""What every analysis returns."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np  # and no torch: what is measured in a child starts small


class Result:
    """A frozen dataclass of plain numbers and numpy arrays, ready for a figure or for JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts and lists of Python numbers; NaN becomes None."""
        plain: dict[str, Any] = _plain(self)
        return plain


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
