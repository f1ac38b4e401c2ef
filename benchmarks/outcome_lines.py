"""The outcomes of a campaign, one line of JSON each, so that it goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_outcomes(results: Path) -> list[dict[str, Any]]:
    """All so far, oldest first."""
    lines = results.read_text().splitlines() if results.exists() else []
    return [json.loads(line) for line in lines]


def add_outcome(results: Path, outcome: dict[str, Any]) -> None:
    with results.open("a") as file:
        file.write(json.dumps(outcome) + "\n")
