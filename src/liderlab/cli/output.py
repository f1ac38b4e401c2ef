"""Error messages, JSON and consoles, the same for all commands."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import printable

if TYPE_CHECKING:
    from rich.console import Console


def complain(message: str) -> int:
    """Print an error in one line; returns the exit code of a user's mistake."""
    print(f"lider: {printable(' '.join(message.split()))}", file=sys.stderr)
    return 2


def report_damaged(reasons: Iterable[str]) -> None:
    """Name the damaged runs that a page or table leaves out."""
    for reason in reasons:
        complain(f"left out: {reason}")


def print_json(tree: Any) -> None:
    """Print JSON; escaped where the output's encoding is not UTF-8, so that it stays valid."""
    escape = (sys.stdout.encoding or "").lower() != "utf-8"
    text = json.dumps(_finite(tree), indent=1, ensure_ascii=escape)
    # json escapes the control characters below U+0020 only
    print(re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text))


def _finite(tree: Any) -> Any:
    """null for NaN and infinity, which a damaged file may hold and JSON does not know."""
    if isinstance(tree, Mapping):
        return {key: _finite(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_finite(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


def new_console(stderr: bool = False, repaints: bool = False) -> Console:
    """A console for tables and progress; with NO_COLOR, plain text without escape codes.

    repaints: keep the escape codes that move the cursor, for a display that consists of them.
    """
    from ..report.terminal.console import SafeConsole

    if not os.environ.get("NO_COLOR"):
        return SafeConsole(stderr=stderr)
    terminal = None if repaints else False
    return SafeConsole(stderr=stderr, color_system=None, force_terminal=terminal)
