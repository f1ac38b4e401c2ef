"""Where data lives: the folder that LIDER_DATA names, or the platform's cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "LIDER_DATA"


def data_folder(root: str | Path | None = None) -> Path:
    """The folder below which data sets lie: `root`, or LIDER_DATA, or the platform's own.

    >>> data_folder("/data").name
    'data'
    """
    chosen = root or os.environ.get(VARIABLE) or platform_folder()
    return Path(chosen).expanduser().absolute()


def cache_folder(root: str | Path | None = None) -> Path:
    """Where decoded images go: beside the data, or the platform's own where that is read-only."""
    beside = data_folder(root)
    existing = next(folder for folder in (beside, *beside.parents) if folder.exists())
    writable = os.access(existing, os.W_OK)
    return (beside if writable else platform_folder()) / "cache"


def platform_folder() -> Path:
    """~/.cache/liderlab (XDG), ~/Library/Caches/liderlab or %LOCALAPPDATA%/liderlab."""
    home = Path.home()
    if sys.platform == "darwin":
        caches = str(home / "Library" / "Caches")
    elif sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or str(home / "AppData" / "Local")
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or str(home / ".cache")
    return Path(caches) / "liderlab"
