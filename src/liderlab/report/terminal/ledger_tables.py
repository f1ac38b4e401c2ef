"""The reproduction ledger in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table

from ...paper.ledger.cells import OURS
from ...paper.ledger.deviations import STATUSES
from ...paper.numbers import TABLES
from ..formatting import number
from ..page.ledger_markdown import Tree, mean_std_n

FULL_SCALE = "*"


def cell_table(rows: Sequence[Tree]) -> Group:
    """One line per cell, in 80 columns; a name is never split, so that it can be copied.

    Cells that the paper does not have come in a table of their own, without its column.
    """
    parts = {
        with_paper: [r for r in rows if ("paper" in r) == with_paper]
        for with_paper in (True, False)
    }
    return Group(*(_cells(part, with_paper) for with_paper, part in parts.items() if part))


def _cells(rows: Sequence[Tree], with_paper: bool) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("cell", overflow="fold")
    for title in (*(["paper"] if with_paper else []), "ours"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        paper = [number(row["paper"])] if with_paper else []
        mark = FULL_SCALE if row["ours"] and row["status"].startswith("paper") else ""
        table.add_row(row["cell"], *paper, mark + mean_std_n(row["ours"]))
    return table


def count_table(ledger: Tree) -> Table:
    """How many cells of every table were measured."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("table")
    for title in ("cells", *STATUSES):
        table.add_column(title, justify="right")
    for name in TABLES:
        here = [cell for cell in ledger["cells"] if cell["table"] == name]
        counts = [sum(c["status"].startswith(status) for c in here) for status in STATUSES]
        table.add_row(name, str(len(here)), *map(str, counts))
    if ledger["ours"]:
        table.add_row(f"{OURS} (not in the paper)", str(len(ledger["ours"])), "", "", "")
    return table
