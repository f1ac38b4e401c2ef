"""The rows of a pass that LiDER watches in the lab, by its options `on` and `rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..types import Batch
from .feature_recorder import Features
from .lider_options import On, Rows

if TYPE_CHECKING:
    from ..training.step import Step

ORIGINS = {"replay": "memory", "stream": "stream"}


def rows_to_watch(batch: Batch, step: Step, on: On, rows: Rows) -> tuple[bool, Tensor | None]:
    """Whether the pass is watched (on any rank), and the indices of its rows; None: all rows."""
    if on == "both" and len(step.memory) == 0:
        return False, None
    if rows == "all" and batch.origin != "both":  # known without reading from the device
        wanted = on == "both" or batch.origin == ORIGINS[on]
        return wanted and bool(batch), all_rows(batch)
    mask = batch.replayed if on == "replay" else ~batch.replayed
    if on == "both":
        mask = torch.ones_like(mask)
    if rows == "past":
        mask = mask & (batch.task < step.task.index)
    watched = any(step.team.agree(bool(mask.any())))
    return watched, None if len(mask) and mask.all() else mask.nonzero()[:, 0]


def all_rows(batch: Batch) -> Tensor | None:
    """None: every row; of a rank without rows, not the blank ones that it lets pass."""
    return None if len(batch) else batch.slot


def select(features: Features, rows: Tensor | None, at_most: int | None) -> Features:
    """The maps of these samples (a mask or indices), or of the first `at_most` of them."""
    if rows is None:
        return features
    rows = (rows.nonzero()[:, 0] if rows.dtype == torch.bool else rows)[:at_most]
    return {name: feature[rows] for name, feature in features.items()}
