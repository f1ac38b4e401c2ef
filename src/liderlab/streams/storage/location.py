"""Where data lives: the folder that LIDER_DATA names, or the platform's cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ...errors import UserError

VARIABLE = "LIDER_DATA"


def data_folder(root: str | Path | None = None) -> Path:
    """The folder below which data sets lie: `root`, or LIDER_DATA, or the platform's own.

    >>> data_folder("/data").name
    'data'
    """
    return absolute(root or os.environ.get(VARIABLE) or platform_folder())


def absolute(path: str | Path) -> Path:
    """The same path by a name that holds in every folder."""
    return readable(expanded(path).absolute())


def expanded(path: str | Path) -> Path:
    """The path with `~` and `~name` at its beginning as home folders."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UserError(f"{path}: nobody knows that home folder, write it out") from None


def readable(path: Path) -> Path:
    """The path itself, if it is text: configurations, results and caches write it down."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"{str(path)!a} is not UTF-8: give it another name") from None
    return path


def cache_folder(root: str | Path | None = None) -> Path:
    """Where decoded images go: beside the data, or the platform's own where that is read-only."""
    beside = data_folder(root)
    existing = next(folder for folder in (beside, *beside.parents) if folder.exists())
    writable = os.access(existing, os.W_OK)
    return (beside if writable else platform_folder()) / "cache"


def platform_folder() -> Path:
    """~/.cache/liderlab (XDG), ~/Library/Caches/liderlab or %LOCALAPPDATA%/liderlab."""
    home = expanded("~")
    if sys.platform == "darwin":
        caches = str(home / "Library" / "Caches")
    elif sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or str(home / "AppData" / "Local")
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or str(home / ".cache")
    return Path(caches) / "liderlab"
