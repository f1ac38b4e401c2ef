"""What is committed is what the committed records say."""

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


def test_it_stays_small() -> None:
    files = list(PACKAGE.glob("records/*.json"))
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert all(file.stat().st_size < 150_000 for file in ROOT.glob("docs/ledger_*.png"))


def test_no_stand_in_is_committed() -> None:
    assert {record.scale for record in read_records()} <= {"cpu", "paper"}


def test_a_checkout_is_where_it_is_written() -> None:
    assert ledger_paths(None).pages == ROOT / "docs"
    assert ledger_paths(Path("x")).records == Path("x/records")
