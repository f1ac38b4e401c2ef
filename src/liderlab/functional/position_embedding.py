"""Position embeddings of a transformer, for another number of patches."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from .token_grid import token_grid


def resized_positions(positions: Tensor, grid: tuple[int, int], prefix: int) -> Tensor | None:
    """Positions for a grid of patches of another size, by bicubic interpolation.

    positions: (1, prefix + h'·w', D), patches in reading order, on a grid of the proportions of
    `grid` → (1, prefix + h·w, D); None if no such grid has h'·w' patches. grid: (h, w). The first
    `prefix` positions, of the class token, stay. A smaller grid is averaged over as many old
    patches as a new one covers (antialiasing).

    >>> resized_positions(torch.ones(1, 1 + 4 * 4, 3), (7, 7), prefix=1).shape
    torch.Size([1, 50, 3])
    >>> resized_positions(torch.ones(1, 1 + 15, 3), (7, 7), prefix=1) is None
    True
    """
    count = positions.shape[1] - prefix
    height, width = token_grid(max(count, 0), grid)
    if height == 0 or height * width != count:
        return None
    old = positions[:, prefix:].mT.unflatten(2, (height, width))
    new = interpolate(old, grid, mode="bicubic", antialias=True, align_corners=False)
    return torch.cat([positions[:, :prefix], new.flatten(2).mT], 1)
