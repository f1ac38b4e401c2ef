"""Checks of the feature maps between which the spatial estimate is taken."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch

from .feature_recorder import INPUT

log = logging.getLogger("liderlab")

Shapes = Mapping[str, torch.Size]
"""(C, H, W) by stage, or (N, D) if it gives N tokens."""


def positions(shape: torch.Size) -> int:
    """How many positions (or tokens) a map has."""
    return shape[0] if len(shape) == 2 else shape[1:].numel()


def channels(shape: torch.Size) -> int:
    return shape[1] if len(shape) == 2 else shape[0]


def usable(chain: Sequence[str], shapes: Shapes) -> list[str]:
    """The chain without maps through which λ has no gradient: those of one position, and an input
    of one channel."""
    _check_dimensions(shapes)
    kept = [
        name
        for name in chain
        if positions(shapes[name]) > 1 and not (name == INPUT and channels(shapes[name]) == 1)
    ]
    if len(kept) < 2:
        raise ValueError("Found fewer than two maps with more than one position: name stages.")
    return kept


def check(chain: Sequence[str], shapes: Shapes) -> None:
    """Refuse a chain whose λ is constant; warn if a λ has no gradient."""
    _check_dimensions(shapes)
    for before, after in pairwise(chain):
        if positions(shapes[before]) == positions(shapes[after]) == 1:
            raise ValueError(
                f"The maps of {before!r} and {after!r} have one position each, so λ between "
                'them is constantly one: choose earlier stages, or estimator="batch".'
            )
        if positions(shapes[after]) == 1:
            log.warning("LiDER: no gradient reaches %s through its own λ: it is 1x1.", after)
        if channels(shapes[before]) == 1:
            log.warning(
                "LiDER: λ between %s and %s has no gradient: %s has one channel, which is ±1 "
                "when normalised. Choose other stages%s.",
                *(before, after, before),
                " or from_input=False" if before == INPUT else "",
            )


def _check_dimensions(shapes: Shapes) -> None:
    for name, shape in shapes.items():
        if len(shape) not in (2, 3):
            raise ValueError(
                f"Expected feature maps (n, C, H, W), or tokens (n, N, D), but {name!r} gives (n, "
                f'{", ".join(map(str, shape))}): choose other stages, or estimator="batch".'
            )
