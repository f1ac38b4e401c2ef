"""Options that keep a method's run short, or fit a regulariser to it."""

import inspect
from typing import Any

from liderlab.methods import METHODS

SMALL: dict[str, dict[str, Any]] = {"casper": {"neighbors": 3}}  # short runs replay few rows


def short_options(method: str, epochs: int) -> dict[str, int]:
    """`epochs` for each option whose name ends so: the passes that a method plans itself."""
    parameters = inspect.signature(METHODS.load(method)).parameters
    return {name: epochs for name in parameters if name.endswith("epochs")}
