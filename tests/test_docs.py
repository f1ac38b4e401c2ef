"""The documentation keeps up with the code."""

import doctest
import importlib.util
import inspect
import itertools
import pkgutil
import re
from pathlib import Path

import pytest

import liderlab
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


def test_every_page_is_two_clicks_from_the_first() -> None:
    """The pages of methods and regularisers are listed on a page of the navigation."""
    docs = ROOT / "docs"

    def linked(page: Path) -> set[Path]:
        targets = re.findall(r"\]\(([^)#:]+?\.md)", page.read_text())
        return {(page.parent / target).resolve() for target in targets}

    reached = {docs / "index.md"}
    for _click in range(2):
        reached |= {target for page in reached for target in linked(page)}
    assert set(docs.glob("*.md")) <= reached


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    """Extras are: pip takes the installed package and gets those of the extra."""
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        assert not re.search(r"pip install '?liderlab(?!\[)", page.read_text()), page
    assert "No package index has `liderlab` yet" in (ROOT / "docs/index.md").read_text()


API = re.findall(r"^::: (\S+)$", (ROOT / "docs/api.md").read_text(), re.M)


@pytest.mark.parametrize("name", API)
def test_names_on_the_api_page_can_be_imported(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None


def test_the_api_page_shows_every_argument_and_doctests_as_code() -> None:
    pytest.importorskip("griffe")
    spec = importlib.util.spec_from_file_location("page", ROOT / "docs/docstring_markdown.py")
    assert spec is not None
    assert spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    assert doctest.testmod(page).failed == 0
    for name in API:
        target = pkgutil.resolve_name(name)
        text = page.with_single_arguments(inspect.getdoc(target) or "")
        _, args, rest = text.partition("Args:\n")
        names = re.findall(r"^    \**(\w[\w, ]*): ", rest.partition("\n\n")[0], re.M)
        assert not args or names
        assert not names or set(names) <= set(inspect.signature(target).parameters)
    shown = page.with_code_blocks(inspect.getdoc(liderlab.LiDER) or "")
    assert "```pycon\n>>> model = " in shown
    assert shown.count("```") == 2


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
                listed = set(re.findall(r"`([\w-]+)`", cell))  # these alone, or all but these
                allowed = set(names) - listed if cell.startswith("✓") else listed or set(names)
                for regularizer in names:
                    works = cell != "–" and regularizer in allowed
                    assert (why_not(method, regularizer, options) is None) == works
                    if options:
                        assert why_not(method, regularizer, {}) is not None
