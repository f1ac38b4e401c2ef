"""error.json in a run folder: why the run failed. A run that has not failed has no such file."""

from __future__ import annotations

import json
import traceback
from datetime import UTC, datetime
from pathlib import Path

from ..files import write_atomically

FILE = "error.json"


def write_failure(folder: Path, message: str, error: BaseException | None = None) -> None:
    """Write the message and, with an exception, its class and traceback."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "error": " ".join(message.split()),
        "kind": type(error).__name__ if error else "died",
        "traceback": "".join(traceback.format_exception(error)) if error else None,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"
    write_atomically(folder / FILE, text)


def read_failure(folder: Path) -> str | None:
    """The message, in one line; None if the run has not failed."""
    try:
        return str(json.loads((folder / FILE).read_bytes())["error"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        return f"the run failed, and {folder / FILE} is damaged"


def clear_failure(folder: Path) -> None:
    (folder / FILE).unlink(missing_ok=True)
