"""The batches of an epoch."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types import Fit


def cut(order: Tensor, fit: Fit) -> list[Tensor]:
    """An epoch's rows as batches, one for every update; a single last row, which BatchNorm cannot
    normalise, joins the batch before. A recipe may drop a short last batch, unless it is the only
    one."""
    size = fit.recipe.batch_size
    if fit.recipe.drop_last and len(order) > size:
        order = order[: len(order) // size * size]
    batches = list(order.split(size)) if len(order) else []
    if len(batches) > 1 and len(batches[-1]) == 1 < size:
        batches[-2:] = [torch.cat(batches[-2:])]
    return [batch for batch in batches for _ in range(fit.recipe.updates)]
