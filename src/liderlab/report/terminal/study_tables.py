"""A study's findings as files and in the terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...analysis.figure_style import save_figure
from ...errors import UserError
from ...files import write_atomically
from ...paper.studies.study_definition import Findings, Row, TableColumn

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from ...paper.studies.study_execution import CompletedStudy

FILES = ("result.json", "table.csv", "table.md", "figure.png", "figure.pdf")


def write_study(conducted: CompletedStudy, folder: Path) -> None:
    """result.json, table.csv, table.md, figure.png and figure.pdf."""
    document = conducted.document()
    title = f"# {document['title']}\n\nThe paper: {document['paper']}.\n\n"
    figure = conducted.study.show(conducted.findings)
    write_findings(document, title, conducted.findings, figure, folder)


def write_findings(
    document: dict[str, Any], title: str, findings: Findings, figure: Figure, folder: Path
) -> None:
    texts = {
        "table.csv": as_csv(findings.rows),
        "table.md": title + as_markdown(findings),
        "result.json": json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in ("png", "pdf"):
            save_figure(figure, folder / f"figure.{suffix}")
        for name, text in texts.items():
            _write(folder / name, text.encode())
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from None


def as_csv(rows: Sequence[Row]) -> str:
    """Every value of every row, unrounded; empty where there is none."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def as_markdown(findings: Findings) -> str:
    """The table, and what belongs under it."""
    columns = findings.columns
    lines = [[column.title for column in columns], ["---"] * len(columns)]
    lines += [[cell(row, column) for column in columns] for row in findings.rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return table + "".join(f"\n{note}\n" for note in findings.notes)


def as_table(findings: Findings) -> Table:
    """For the terminal: without columns that are empty, or the same all the way down."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    shown = [column for column in findings.columns if _says_something(findings.rows, column)]
    for column in shown:
        text = any(isinstance(row.get(column.keys[0]), str) for row in findings.rows)
        table.add_column(column.title, justify="left" if text else "right", overflow="fold")
    for row in findings.rows:
        table.add_row(*(cell(row, column) for column in shown))
    return table


def _says_something(rows: Sequence[Row], column: TableColumn) -> bool:
    cells = {cell(row, column) for row in rows}
    return cells != {"–"} and (len(cells) > 1 or len(rows) == 1 or len(column.keys) > 1)


def cell(row: Row, column: TableColumn) -> str:
    """
    >>> cell({"gain": 1.5, "low": -0.25, "high": 3.25}, TableColumn("Δ", ("gain", "low", "high")))
    '1.50 [-0.25, 3.25]'
    >>> cell({"faa": 38.43, "std": None}, TableColumn("FAA", ("faa", "std")))
    '38.43'
    """
    value, *rest = (row.get(key) for key in column.keys)
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    form = f"{'+' if column.sign else ''}.{column.digits}f"
    text = format(value, form)
    if not rest or None in rest:
        return text
    others = [format(other, form) for other in rest]
    if len(others) == 1:
        return f"{text} ± {others[0].lstrip('+')}"
    return f"{text} [{', '.join(others)}]"


def _write(path: Path, content: bytes) -> None:
    write_atomically(path, content)
