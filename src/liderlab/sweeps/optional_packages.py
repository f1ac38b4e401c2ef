"""Packages that only some people need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import UserError


def require(package: str, extra: str, purpose: str) -> Any:
    """The package, or the command that installs it.

    >>> require("json", "none", "--anything").__name__
    'json'
    """
    try:
        return import_module(package)
    except ImportError:
        raise UserError(
            f"{purpose} needs the package {package}: pip install 'liderlab[{extra}]'"
        ) from None
