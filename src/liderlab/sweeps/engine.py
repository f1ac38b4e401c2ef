"""What the scheduler asks of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..runs.planned_run import PlannedRun
from .worker import Ending


@dataclass(frozen=True)
class Ended:
    """A worker is gone. ending: as it said itself; None: it died, and `why` says how."""

    plan: PlannedRun
    ending: Ending | None
    why: str = ""


class Engine(Protocol):
    """Starts runs somewhere, and tells which have ended."""

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        """Start the first ones of `waiting`, as many as there is room for, and return them."""
        ...

    def ended(self, seconds: float) -> list[Ended]:
        """Who has ended since; wait at most that long for the first one."""
        ...

    def cancel(self, plan: PlannedRun) -> None:
        """Let it save and stop; it will show up among the ended."""
        ...

    def close(self) -> None:
        """End whatever is left, at once."""
        ...
