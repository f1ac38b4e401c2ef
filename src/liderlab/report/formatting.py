"""Values as text, the same in every view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..functional.statistics import summarise

MISSING = "–"


def number(value: float | None, digits: int = 2, sign: bool = False) -> str:
    """
    >>> number(36.931), number(-0.001), number(1.5, sign=True), number(None)
    ('36.93', '0.00', '+1.50', '–')
    """
    if value is None:
        return MISSING
    return f"{round(value, digits) + 0.0:{'+' if sign else ''}.{digits}f}"


def with_interval(
    mean: float | None, low: float | None, high: float | None, digits: int = 2, sign: bool = True
) -> str:
    """
    >>> with_interval(1.0, -0.5, 2.5), with_interval(1.0, None, None)
    ('+1.00 [-0.50, +2.50]', '+1.00')
    """
    values = [number(value, digits, sign) for value in (mean, low, high)]
    return values[0] if low is None else f"{values[0]} [{values[1]}, {values[2]}]"


def mean_std(mean: float | None, std: float | None, digits: int = 2, sign: bool = False) -> str:
    """
    >>> mean_std(36.931, 0.41), mean_std(36.931, None), mean_std(None, None)
    ('36.93 ± 0.41', '36.93', '–')
    """
    return number(mean, digits, sign) + ("" if std is None else f" ± {std:.{digits}f}")


def mean_std_of(values: Sequence[float | None]) -> str:
    """Mean ± sample standard deviation of the values that are defined.

    >>> mean_std_of([70.0, 72.0]), mean_std_of([70.0]), mean_std_of([None])
    ('71.00 ± 1.41', '70.00', '–')
    """
    found = summarise([value for value in values if value is not None])
    return mean_std(found.mean, found.std) if found else MISSING


def plain(value: Any) -> str:
    """A field of a configuration."""
    return MISSING if value is None else str(value)


def duration(seconds: float | None) -> str:
    """
    >>> duration(40), duration(5400), duration(9e6), duration(None)
    ('40 s', '1.5 h', '104 d', '?')
    """
    if seconds is None:
        return "?"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"
    return f"{seconds:.0f} s"


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """
    >>> print(markdown_table(["method", "FAA"], [["er", "70.00"]]), end="")
    | method | FAA |
    | --- | --- |
    | er | 70.00 |
    """
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
