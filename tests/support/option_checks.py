"""The options of a method or regulariser: their defaults, and the numbers that are accepted."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest

from liderlab.errors import UserError


def defaults_of(make: Callable[..., Any]) -> dict[str, Any]:
    """By name, in the order of the signature; they are accepted."""
    make()
    parameters = inspect.signature(make).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def check_range(make: Callable[..., Any], option: str, allowed: str, **others: Any) -> None:
    """allowed: like "[0.0, 1.0)", or "[1, inf)" for whole numbers."""
    low, high = allowed[1:-1].split(", ")
    for accepted, refused in (edge(low, allowed[0] == "[", -1), edge(high, allowed[-1] == "]", 1)):
        make(**{option: accepted}, **others)
        with pytest.raises(UserError, match=f"Expected {option} "):
            make(**{option: refused}, **others)


def edge(text: str, closed: bool, outwards: int) -> tuple[float, float]:
    """The outermost number that belongs to the range, and the next one, which does not."""
    if text == "inf":
        return 10**6, math.inf
    bound = int(text) if text.isdigit() else float(text)

    def next_to(direction: int) -> float:
        whole = isinstance(bound, int)
        return bound + direction if whole else math.nextafter(bound, direction * math.inf)

    return (bound, next_to(outwards)) if closed else (next_to(-outwards), bound)
