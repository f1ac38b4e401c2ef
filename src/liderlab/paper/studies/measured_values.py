"""Values that a study measures: computed once, then read from their file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...files import write_atomically


def measured_once(path: Path, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The values in the file, or those of `measure`, which are written to it."""
    try:
        kept: dict[str, Any] = json.loads(path.read_bytes())
        return kept
    except (OSError, ValueError):
        pass
    found = measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(found).encode())
    return found
