"""A study's findings in the terminal."""

from __future__ import annotations

from rich.table import Table

from ...paper.studies.study_definition import Findings, TableColumn
from ..formatting import MISSING
from ..study_files import cell


def findings_table(findings: Findings) -> Table:
    """The findings without columns that are empty or have one value in all rows."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    shown = [column for column in findings.columns if _is_informative(findings, column)]
    for column in shown:
        text = any(isinstance(row.get(column.keys[0]), str) for row in findings.rows)
        table.add_column(column.title, justify="left" if text else "right", overflow="fold")
    for row in findings.rows:
        table.add_row(*(cell(row, column) for column in shown))
    return table


def _is_informative(findings: Findings, column: TableColumn) -> bool:
    cells = {cell(row, column) for row in findings.rows}
    varies = len(cells) > 1 or len(findings.rows) == 1 or len(column.keys) > 1
    return cells != {MISSING} and varies
