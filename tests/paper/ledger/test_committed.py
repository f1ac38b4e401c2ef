"""The committed page, JSON and figures are those of the committed records."""

from pathlib import Path

from liderlab.paper.ledger.figures import draw_all
from liderlab.paper.ledger.ledger_document import as_json, assemble
from liderlab.paper.ledger.ledger_paths import PACKAGE, ledger_paths, read_findings
from liderlab.paper.ledger.record import read_records
from liderlab.report.page.ledger_markdown import FIGURES, as_markdown

ROOT = Path(__file__).parents[3]


def test_the_page_and_the_json_are_those_of_the_records() -> None:
    """If this fails: lider ledger collect writes both anew."""
    records = read_records()
    ledger = assemble(records)
    figures = draw_all(records, ledger)
    assert (ROOT / "docs/ledger.json").read_text(encoding="utf-8") == as_json(ledger)
    page = as_markdown(ledger, read_findings(), figures)
    assert (ROOT / "docs/ledger.md").read_text(encoding="utf-8") == page
    drawn = {path.name for path in ROOT.glob("docs/ledger_*.png")}
    assert drawn == set(figures)
    assert drawn <= set(FIGURES)


def test_records_and_figures_stay_small() -> None:
    files = list(PACKAGE.glob("records/*.json"))
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert all(file.stat().st_size < 150_000 for file in ROOT.glob("docs/ledger_*.png"))


def test_no_stand_in_is_committed() -> None:
    assert {record.scale for record in read_records()} <= {"cpu", "paper"}


def test_the_ledger_is_written_into_the_checkout() -> None:
    assert ledger_paths(None).pages == ROOT / "docs"
    assert ledger_paths(Path("x")).records == Path("x/records")
