"""Distances in pixels, for models whose inputs are normalised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Normalisation(Protocol):
    """input = (pixel − mean) / std per channel, for pixels in 0…1 (a stream's `transform`)."""

    @property
    def mean(self) -> Sequence[float]: ...
    @property
    def std(self) -> Sequence[float]: ...


@dataclass(frozen=True)
class Pixels:
    """A normalisation by its numbers. By default inputs are the pixels in 0…1 themselves.

    >>> raw = Pixels(std=[1 / 255])  # for a model that takes pixels in 0…255
    >>> input_limits(raw, torch.zeros(1, 3, 2, 2))[1].item()
    255.0
    """

    mean: Sequence[float] = (0.0,)
    std: Sequence[float] = (1.0,)


def pixel_size(normalisation: Normalisation, x: Tensor) -> Tensor:
    """The range of a pixel, black to white, in inputs like x (n, C, …): (C, 1, …)."""
    return (1 / _per_channel(normalisation.std, x)).to(x)


def input_limits(normalisation: Normalisation, x: Tensor) -> tuple[Tensor, Tensor]:
    """Black and white as inputs: the smallest and the largest values."""
    mean, std = (_per_channel(v, x) for v in (normalisation.mean, normalisation.std))
    return (-mean / std).to(x), ((1 - mean) / std).to(x)


def _per_channel(values: Sequence[float], x: Tensor) -> Tensor:
    """(C, 1, …) in float64."""
    if len(values) not in (1, x.shape[1]):
        raise ValueError(
            f"Expected mean and std for 1 or {x.shape[1]} channels, but got {len(values)}."
        )
    return torch.tensor(values, dtype=torch.float64).reshape(-1, *[1] * (x.dim() - 2))
