"""A run that is planned: its name, configuration and folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..config.schema import RunConfig


@dataclass(frozen=True)
class PlannedRun:
    """name: unique among the runs that are planned together."""

    name: str
    config: RunConfig
    folder: Path
