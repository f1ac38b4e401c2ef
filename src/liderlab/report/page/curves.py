"""Logged values as curves of few points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Curve = dict[str, list[float | None]]


def downsample(steps: Sequence[int], values: Sequence[float | None], points: int) -> Curve:
    """At most `points` of a curve: the mean of every stretch of steps; its minimum (low) and
    maximum (high) where a stretch holds more than one step. A non-finite value leaves a gap.

    >>> downsample([1, 2, 3, 4], [1.0, 3.0, 2.0, 6.0], 2)
    {'x': [2, 4], 'y': [2.0, 4.0], 'low': [1.0, 2.0], 'high': [3.0, 6.0]}
    >>> downsample([1, 2], [1.0, float("nan")], 2)
    {'x': [1, 2], 'y': [1.0, None]}
    """
    size = max(1, -(-len(steps) // points))
    starts = range(0, len(steps), size)
    finite = [
        [v for v in values[i : i + size] if v is not None and math.isfinite(v)] for i in starts
    ]
    curve: Curve = {
        "x": [steps[min(i + size, len(steps)) - 1] for i in starts],
        "y": [round_to_screen(sum(part) / len(part)) if part else None for part in finite],
    }
    if size > 1:
        curve["low"] = [round_to_screen(min(part)) if part else None for part in finite]
        curve["high"] = [round_to_screen(max(part)) if part else None for part in finite]
    return curve


def logged_curves(steps: Sequence[Mapping[str, Any]], field: str, points: int) -> dict[str, Curve]:
    """The curve of every loss term or reading by name. field: terms or readings."""
    curves = {}
    for name in dict.fromkeys(name for line in steps for name in line[field]):
        having = [line for line in steps if name in line[field]]
        numbers = [line["step"] for line in having]
        curves[name] = downsample(numbers, [line[field][name] for line in having], points)
    return curves


def round_to_screen(value: float) -> float:
    """Four digits: more than a chart can show.

    >>> round_to_screen(0.123456)
    0.1235
    """
    return float(f"{value:.4g}")
