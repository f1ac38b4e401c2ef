"""A run that is to be: what to call it, its configuration, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..config.schema import RunConfig


@dataclass(frozen=True)
class PlannedRun:
    """name: unique among the plans that are run together."""

    name: str
    config: RunConfig
    folder: Path
