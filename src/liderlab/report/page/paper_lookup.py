"""The paper's tables in the form in which the report looks its numbers up."""

from __future__ import annotations

from ...paper.numbers import cells
from .run_groups import PaperKey, PaperNumbers

TABLES = ("faa", "ff", "single-epoch")


def published() -> PaperNumbers:
    """Every method with and without LiDER, as the paper's main tables print it.

    >>> published()["cifar100", 500, "er-ace", True]
    {'faa': 38.43, 'ff': 36.0}
    """
    numbers: dict[PaperKey, dict[str, float]] = {}
    for cell in cells():
        if cell.table in TABLES and cell.addition in ("", "lider"):
            key = (cell.setting, cell.buffer, cell.method, cell.lider)
            numbers.setdefault(key, {})[cell.metric] = cell.value
    return numbers
