"""The documentation keeps up with the code."""

import inspect
import re
from pathlib import Path

import pytest

from liderlab.config.options import SUPPLIED
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS
from liderlab.runs.folder import MAY_CHANGE

ROOT = Path(__file__).parent.parent
PAGES = {name: (entry, "method") for name, entry in METHODS.items()} | {
    name: (entry, "regularizer") for name, entry in REGULARIZERS.items()
}


@pytest.mark.parametrize("name", PAGES)
def test_every_option_is_on_its_page(name: str) -> None:
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
    for field in MAY_CHANGE:
        assert f"`{field}`" in page
        assert f"`--{field.replace('_', '-')}`" in page


def test_every_page_is_in_the_sites_navigation() -> None:
    """`make docs` builds strictly, which also checks every link; a page nobody lists is lost."""
    site = (ROOT / "mkdocs.yml").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in ROOT.glob("docs/**/*.md")]
    assert not [page for page in pages if f": {page}\n" not in site]
