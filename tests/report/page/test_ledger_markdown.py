"""The ledger's page: every number of the paper once, and never a blank."""

import re

from liderlab.paper import numbers
from liderlab.paper.ledger.ledger_document import assemble
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
    table = cell_table(rows)
    assert list(table.columns[1].cells) == ["73.29", "75.20", "53.55"]
    assert list(table.columns[2].cells) == ["–"] * 3
