"""Long logs as short curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Curve = dict[str, list[float | None]]


def thin(steps: Sequence[int], values: Sequence[float | None], points: int) -> Curve:
    """At most `points` of a curve: the mean of each stretch and, where stretches hold more than
    one value, the least (low) and the greatest (high). What is not finite leaves a gap.

    >>> thin([1, 2, 3, 4], [1.0, 3.0, 2.0, 6.0], 2)
    {'x': [2, 4], 'y': [2.0, 4.0], 'low': [1.0, 2.0], 'high': [3.0, 6.0]}
    >>> thin([1, 2], [1.0, float("nan")], 2)
    {'x': [1, 2], 'y': [1.0, None]}
    """
    size = max(1, -(-len(steps) // points))
    stretches = [values[i : i + size] for i in range(0, len(values), size)]
    finite = [[v for v in part if v is not None and math.isfinite(v)] for part in stretches]
    last = [steps[min(i + size, len(steps)) - 1] for i in range(0, len(steps), size)]
    curve: Curve = {
        "x": list(last),
        "y": [short(sum(part) / len(part)) if part else None for part in finite],
    }
    if size > 1:
        curve["low"] = [short(min(part)) if part else None for part in finite]
        curve["high"] = [short(max(part)) if part else None for part in finite]
    return curve


def logged(lines: Sequence[Mapping[str, Any]], field: str, points: int) -> dict[str, Curve]:
    """The curves of all `terms` or `readings` of a run, by name."""
    steps = [line for line in lines if line["kind"] == "step"]
    names = dict.fromkeys(name for line in steps for name in line[field])
    curves = {}
    for name in names:
        there = [line for line in steps if name in line[field]]
        numbers = [line["step"] for line in there]
        curves[name] = thin(numbers, [line[field][name] for line in there], points)
    return curves


def short(value: float) -> float:
    """Four digits are more than a line on a screen can show.

    >>> short(0.123456)
    0.1235
    """
    return float(f"{value:.4g}")
