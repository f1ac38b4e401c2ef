"""The documentation keeps up with the code."""

import inspect
import itertools
import re
from pathlib import Path

import pytest

from liderlab.config.compatibility import why_not
from liderlab.config.identity import may_differ
from liderlab.config.options import SUPPLIED
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS

ROOT = Path(__file__).parent.parent
PAGES = {name: (entry, "method") for name, entry in METHODS.items()} | {
    name: (entry, "regularizer") for name, entry in REGULARIZERS.items()
}


WRITTEN = sorted(page.stem for page in ROOT.glob("docs/methods/*.md"))


@pytest.mark.parametrize("name", WRITTEN)
def test_every_option_is_on_its_page(name: str) -> None:
    """A page is optional: the site generates one for an entry without (docs/method_pages.py)."""
    entry, kind = PAGES[name]
    target = entry.load()
    function = target.__init__ if inspect.isclass(target) else target
    options = set(inspect.signature(function).parameters) - SUPPLIED[kind] - {"self"}
    if target.__init__ is object.__init__ or "args" in options:
        options = set()
    page = (ROOT / f"docs/methods/{name}.md").read_text()
    missing = [option for option in options if f"`{option}" not in page]
    assert not missing
    assert "lider run" in page
    assert "eviation" in page


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")) + sorted(ROOT.glob("*.md")))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


def test_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in readme
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_what_may_change_on_resuming_is_documented() -> None:
    page = (ROOT / "docs/resume.md").read_text()
    for field in may_differ("resume"):
        assert f"`{field}`" in page
        option = "import" if field == "imports" else field.replace("_", "-")  # repeatable
        assert f"`--{option}`" in page


def test_every_page_is_in_the_sites_navigation() -> None:
    """`make docs` builds strictly and checks every link; the hook lists the methods' pages."""
    site = (ROOT / "mkdocs.yml").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in ROOT.glob("docs/*.md")]
    assert not [page for page in pages if f": {page}\n" not in site]


def test_readmes_table_of_methods_and_regularisers_is_true() -> None:
    """Every cell agrees with the check of configurations; a new method needs no row."""
    lines = (ROOT / "README.md").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| | plain |"))
    columns = [re.findall(r"`([\w-]+)`", cell) for cell in lines[start].strip("|").split("|")[2:]]
    assert {name for names in columns for name in names} == set(REGULARIZERS)
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :]):
        methods, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for method in re.findall(r"`([^`]+)`", methods):
            for names, cell in zip(columns, cells, strict=True):
                options = {"on": "stream"} if cell == "on the stream" else {}
                for regularizer in names:
                    assert (why_not(method, regularizer, options) is None) == (cell != "–")
                    if options:
                        assert why_not(method, regularizer, {}) is not None
