"""The ledger's page: every number of the paper once, and never a blank."""

import io
import re

from rich.console import Console
from rich.table import Table

from liderlab.paper import numbers
from liderlab.paper.ledger.ledger_document import assemble
from liderlab.paper.ledger.record import read_records
from liderlab.report.page.ledger_markdown import as_markdown
from liderlab.report.terminal.ledger_tables import cell_table


def rows_of(page: str) -> list[list[str]]:
    lines = [line for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_holds_every_printed_number_and_no_blank_cell() -> None:
    page = as_markdown(assemble([]))
    tables = page.partition("## Every cell of the paper")[2]
    cells = [cell for row in rows_of(tables) for cell in row]
    assert all(cells)
    for table in numbers.TABLES.values():
        assert table in tables
    printed = sum(re.fullmatch(r"\d+\.\d\d", cell) is not None for cell in cells)
    bounds = [cell for cell in numbers.cells() if cell.buffer is None]
    assert printed == 436 + len(bounds)  # which stand under both buffers
    assert "not measured" in page
    assert "Measured results" not in page


def test_the_findings_stand_on_the_page() -> None:
    page = as_markdown(assemble([]), "## What it says\n\nNothing yet.\n")
    assert "## What it says\n\nNothing yet.\n" in page


def test_a_terminal_row_shows_the_paper_and_our_number() -> None:
    rows = assemble([])["cells"][:3]
    (table,) = cell_table(rows).renderables
    assert isinstance(table, Table)
    assert list(table.columns[1].cells) == ["73.29", "75.20", "53.55"]
    assert list(table.columns[2].cells) == ["–"] * 3


def test_names_are_whole_in_80_columns() -> None:
    """They are what `lider ledger check` takes."""
    ledger, text = assemble(read_records(None)), io.StringIO()
    rows = [*ledger["cells"], *ledger["ours"]]
    Console(file=text, width=80).print(cell_table(rows))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if "/" in line] == [row["cell"] for row in rows]
    marked = {line.split()[0] for line in lines if " *" in line}
    assert marked == {row["cell"] for row in rows if row["ours"] and "paper" in row["status"]}
