"""The data folder: LIDER_DATA, or else the platform's cache folder."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from ...errors import UserError

VARIABLE = "LIDER_DATA"


def data_folder(root: str | Path | None = None) -> Path:
    """The folder that holds the data sets: `root`, or LIDER_DATA, or the platform's cache folder.

    >>> data_folder("/data").name
    'data'
    """
    return absolute(root or os.environ.get(VARIABLE) or platform_folder())


def absolute(path: str | Path) -> Path:
    """The absolute path, with `~` expanded."""
    return check_utf8(expanded(path).absolute())


def expanded(path: str | Path) -> Path:
    """The path with a leading `~` or `~name` replaced by that home folder; it need not exist."""
    try:
        whole = Path(path).expanduser()
        os.lstat(whole)
    except RuntimeError:
        raise UserError(f"{path}: unknown home folder, write the path out") from None
    except ValueError:
        raise UserError(f"{str(path)!a} has a character that no path can have") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UserError(f"{path}: the name is too long for a file or folder") from None
    return whole


def check_utf8(path: Path) -> Path:
    """Return the path if it can be written to a text file: configurations and results name it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"{str(path)!a} is not UTF-8: rename it") from None
    return path


def cache_folder(root: str | Path | None = None) -> Path:
    """The folder for decoded images: in the data folder, or the platform's if that is read-only."""
    data = data_folder(root)
    existing = next(folder for folder in (data, *data.parents) if folder.exists())
    return (data if os.access(existing, os.W_OK) else platform_folder()) / "cache"


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
