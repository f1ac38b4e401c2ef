"""The documentation's site, built and opened as files: nothing is fetched, and its search works."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TYPE = """(() => {
  const input = document.querySelector('.md-search__input');
  input.focus();
  input.value = 'herding';
  input.dispatchEvent(new KeyboardEvent('keyup', {key: 'g', bubbles: true}));
})()"""


@pytest.mark.slow
def test_the_search_works_from_files(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        check=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    for page in (tmp_path / "site").rglob("*.html"):
        assert not re.findall(r'(?:src|href)="https?://[^"]+\.(?:js|css)"', page.read_text())
    browser.events.clear()
    browser.call("Page.navigate", url=(tmp_path / "site/index.html").as_uri())
    browser.wait("document.readyState === 'complete' && document.querySelector('iframe')")
    browser.run(TYPE)
    browser.wait("document.querySelectorAll('.md-search-result__item').length > 2")
    assert "The rehearsal memory" in browser.texts(".md-search-result__item h1")
    assert browser.errors() == []
    assert not [url for url in browser.requests() if url.startswith("http")]
