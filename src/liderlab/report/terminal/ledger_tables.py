"""The reproduction ledger in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ...paper.ledger.cells import OURS
from ...paper.ledger.deviations import STATUSES
from ...paper.numbers import TABLES
from ..formatting import MISSING, number
from ..page.ledger_markdown import Tree, mean_std_n


def cell_table(rows: Sequence[Tree]) -> Table:
    """One line per cell, in 80 columns."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("cell", overflow="fold")
    for title in ("paper", "ours", "scale"):
        table.add_column(title, justify="left" if title == "scale" else "right", no_wrap=True)
    for row in rows:
        printed, ours = number(row.get("paper")), mean_std_n(row["ours"])
        scale = row["status"].partition(" ")[0] if row["ours"] else MISSING
        table.add_row(row["cell"], printed, ours, scale)
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
