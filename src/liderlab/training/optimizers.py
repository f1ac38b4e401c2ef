"""Optimisers, and the parameter groups that they train."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import UserError
from ..regularizers.base import Regularizer


def regularizer_groups(regularizers: Sequence[Regularizer]) -> list[dict[str, Any]]:
    """The parameter groups of all regularisers, checked."""
    groups = []
    for regularizer in regularizers:
        owner = type(regularizer).__name__
        for group in regularizer.param_groups():
            if not group.get("params"):
                raise UserError(f"{owner} has a parameter group without parameters")
            if "lr" in group:
                raise UserError(
                    f"{owner} has a parameter group with an lr: give lr_factor, which multiplies "
                    "the learning rate of the network"
                )
            groups.append(dict(group))  # torch adds to it
    return groups
