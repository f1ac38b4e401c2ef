"""Packages that an extra of liderlab installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import UserError


def require(package: str, extra: str, feature: str) -> Any:
    """Import the package, or say how to install it.

    >>> require("json", "none", "--anything").__name__
    'json'
    """
    try:
        return import_module(package)
    except ImportError:
        raise UserError(
            f"{feature} needs the package {package}: pip install 'liderlab[{extra}]'"
        ) from None
