"""The values that single fields of a configuration allow. No torch needed.

Most are checked before pydantic does: its message about a union would list Python types.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field


def _class_order(value: Any) -> Any:
    listed = isinstance(value, (list, tuple)) and all(type(c) is int for c in value)
    if not listed and value not in ("natural", "shuffled"):
        raise ValueError("expected natural, shuffled, or a list of all classes like [3, 1, 2, 0]")
    return value


def _tasks(value: Any) -> Any:
    """Class names may look like numbers."""
    if isinstance(value, (list, tuple)) and value:
        if all(type(n) is int and n >= 1 for n in value):
            return list(value)
        if all(isinstance(names, (list, tuple)) and names for names in value) and all(
            isinstance(name, str) or type(name) is int for names in value for name in names
        ):
            return [[str(name) for name in names] for names in value]
    elif value is None or (str(value).isdecimal() and int(value) >= 1):
        return value if value is None else int(value)
    raise ValueError(
        "expected the number of tasks, the number of classes of each like [50, 10, 10], or their "
        "names like [[cat, dog], [bird]]"
    )


def _patterns(value: Any) -> Any:
    listed = isinstance(value, (list, tuple)) and all(isinstance(p, str) and p for p in value)
    if not listed and value != "all-but-head":
        raise ValueError("expected all-but-head, or a list of patterns like [conv1, layer1.*]")
    return value


def _increasing(milestones: list[int]) -> list[int]:
    if milestones != sorted({m for m in milestones if m > 0}):
        raise ValueError("expected epochs from 1 on, each later than the one before")
    return milestones


def _float32(value: float) -> float:
    if value > 1e38:
        raise ValueError("expected at most 1e38, about the most that float32 can hold")
    return value


DEVICES = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")


def _device(value: Any) -> Any:
    if not isinstance(value, str) or not DEVICES.fullmatch(value):
        raise ValueError("expected cpu, cuda, cuda:1, …, mps or auto")
    return value


@dataclass(frozen=True)
class CheckpointInterval:
    """A number of steps, or seconds, from one checkpoint to the next."""

    steps: float = math.inf
    seconds: float = math.inf

    @classmethod
    def parse(cls, text: str) -> CheckpointInterval:
        """
        >>> CheckpointInterval.parse("200"), CheckpointInterval.parse("5m")
        (CheckpointInterval(steps=200, seconds=inf), CheckpointInterval(steps=inf, seconds=300))
        """
        match = re.fullmatch(r"([1-9]\d{0,8})([smh]?)", text.strip())
        if not match:
            raise ValueError("expected steps like 200, or time like 30s, 5m or 1h")
        number, unit = int(match[1]), match[2]
        return cls(seconds=number * {"s": 1, "m": 60, "h": 3600}[unit]) if unit else cls(number)

    def due(self, steps: int, seconds: float) -> bool:
        return steps >= self.steps or seconds >= self.seconds


EVERY_STEPS = re.compile(r"every:([1-9]\d{0,8})(?::([1-9]\d{0,8}))?")
ANYTIME_IMAGES = 200


def _evaluate(value: Any) -> str:
    if value not in ("every", "seen", "last") and not EVERY_STEPS.fullmatch(str(value)):
        raise ValueError(
            "expected every, seen (every task, without FWT), last, every:50 (also every 50 steps) "
            "or every:50:1000 (with up to 1000 images of each task)"
        )
    return str(value)


def _interval(value: Any) -> str:
    CheckpointInterval.parse(str(value))
    return str(value)


ClassOrder = Annotated[Literal["natural", "shuffled"] | list[int], BeforeValidator(_class_order)]
Tasks = Annotated[int | list[int] | list[list[str]] | None, BeforeValidator(_tasks)]
Patterns = Annotated[Literal["all-but-head"] | list[str], BeforeValidator(_patterns)]
Milestones = Annotated[list[int], AfterValidator(_increasing)]
Device = Annotated[str, BeforeValidator(_device)]
Evaluate = Annotated[str, BeforeValidator(_evaluate)]
Interval = Annotated[str, BeforeValidator(_interval)]
Finite32 = Annotated[float, AfterValidator(_float32)]
Count = Annotated[int | None, Field(ge=1, le=10**15)]
