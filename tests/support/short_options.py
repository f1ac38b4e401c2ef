"""Options that keep a method's run short."""

import inspect

from liderlab.methods import METHODS


def short_options(method: str, epochs: int) -> dict[str, int]:
    """`epochs` for each option whose name ends so: the passes that a method plans itself."""
    parameters = inspect.signature(METHODS.load(method)).parameters
    return {name: epochs for name in parameters if name.endswith("epochs")}
