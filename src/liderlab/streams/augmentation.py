"""From pixels to network input: crop, flip and normalise whole batches at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..types import View


class Augment:
    """Random crop with zero padding, random horizontal flip, then (pixel/255 − mean)/std.

    A batch is transformed by one gather. A sampled view can be applied again to other pixels, and
    is differentiable if they are floating-point.

    >>> augment = Augment(mean=[0.5], std=[0.5], padding=2, flip=True)
    >>> view = augment.sample(3, torch.Generator())
    >>> view(torch.zeros(3, 1, 8, 8, dtype=torch.uint8)).mean().item()
    -1.0
    """

    def __init__(
        self, mean: Sequence[float], std: Sequence[float], *, padding: int = 0, flip: bool = False
    ) -> None:
        self.mean, self.std = [float(m) for m in mean], [float(s) for s in std]
        self.padding, self.flip = padding, flip
        self._scale = (1 / (255 * torch.tensor(self.std))).reshape(-1, 1, 1)
        self._shift = (torch.tensor(self.mean) / torch.tensor(self.std)).reshape(-1, 1, 1)

    def sample(self, n: int, generator: torch.Generator | None, part: slice = slice(None)) -> View:
        """A random view of (a part of) a batch of n images; without a generator, normalisation."""
        if generator is None:
            return self.normalise
        p = self.padding
        dy, dx = torch.randint(-p, p + 1, (2, n, 1), generator=generator)
        flip = torch.rand(n, 1, generator=generator) < (0.5 if self.flip else 0.0)
        dy, dx, flip = dy[part], dx[part], flip[part]

        def view(raw: Tensor) -> Tensor:
            return self.normalise(_crop(raw, dy, dx, flip) if p or self.flip else raw)

        return view

    def normalise(self, raw: Tensor) -> Tensor:
        pixels = raw if raw.is_floating_point() else raw.float()
        scale, shift = (t.to(raw.device, non_blocking=True) for t in (self._scale, self._shift))
        return pixels * scale - shift


def _crop(raw: Tensor, dy: Tensor, dx: Tensor, flip: Tensor) -> Tensor:
    """Shift each image by its own offset, padded with zeros, and mirror it where flip is set."""
    n, channels, height, width = raw.shape
    rows = torch.arange(height) + dy
    columns = torch.arange(width).expand(n, -1)
    columns = torch.where(flip, width - 1 - columns, columns) + dx
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[
        :, None, :
    ]
    flat = rows.clamp(0, height - 1)[:, :, None] * width + columns.clamp(0, width - 1)[:, None, :]
    index = flat.reshape(n, 1, height * width).to(raw.device, non_blocking=True)
    moved = raw.flatten(2).gather(2, index.expand(-1, channels, -1)).reshape(raw.shape)
    return moved * inside[:, None].to(raw.device, non_blocking=True)
