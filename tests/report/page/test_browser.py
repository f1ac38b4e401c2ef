"""The report in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.report.page.html import write_report
from liderlab.report.run_records import RunRecord, read_all
from liderlab.runs.execute import run

NASTY = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
FINAL = "tbody tr > :nth-child(3)"  # the column of FAA


@pytest.fixture(scope="module")
def page(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_report(read_all([runs])[0], out)
    return out


def test_every_page_loads_without_errors_or_requests(browser: Any, page: Path) -> None:
    for fragment in (
        "",
        "#runs",
        "#words",
        "#compare",
        "#nonsense",
        "#run-99",
        *(f"#run-{n}" for n in range(7)),
    ):
        browser.open(page, fragment)
        assert browser.errors() == [], fragment
        assert browser.requests() == [page.as_uri()], fragment
        assert browser.texts("main h2"), fragment


def test_columns_sort_both_ways_with_gaps_last(browser: Any, page: Path) -> None:
    browser.open(page)

    def faa() -> list[float]:
        return [float(re.match(r"[\d.]+", text)[0]) for text in browser.texts(f"#methods {FINAL}")]

    head = "#methods thead th:nth-child(3)"
    browser.click(f"{head} button")
    assert faa() == sorted(faa(), reverse=True)
    assert browser.run(f"document.querySelector('{head}').ariaSort") == "descending"
    browser.click(f"{head} button")
    assert faa() == sorted(faa())
    assert browser.run(f"document.querySelector('{head}').ariaSort") == "ascending"
    for _ in range(2):  # FF, not defined for joint
        browser.click("#methods thead th:nth-child(4) button")
        assert browser.texts("#methods tbody tr > :nth-child(4)")[-1] == "–"
    browser.click("#methods thead th:nth-child(1) button")
    labels = browser.texts("#methods tbody th")
    assert labels == ["er", "er-ace", "er-ace + LiDER", "gmed", "joint"]


def type_filter(browser: Any, text: str) -> None:
    browser.run(
        f"(() => {{ const f = document.getElementById('filter'); f.value = {json.dumps(text)}; "
        "f.dispatchEvent(new Event('input')); })()"
    )


def test_filters(browser: Any, page: Path) -> None:
    browser.open(page)
    type_filter(browser, "ace LIDER")
    assert browser.texts("#methods tbody th") == ["er-ace + LiDER"]
    assert browser.texts(".count") == ["1 of 5 rows"]
    browser.run("location.hash = 'runs'")
    browser.wait("document.getElementById('runs-table')")
    assert browser.texts("#runs-table tbody th") == ["er-ace-lider-0", "er-ace-lider-1"]
    type_filter(browser, "no such thing")
    assert "Nothing matches" in browser.texts("main")[0]
    type_filter(browser, "")
    assert len(browser.texts("#runs-table tbody th")) == 7


def test_switching_runs_by_link_list_and_history(browser: Any, page: Path) -> None:
    browser.open(page, "#runs")
    browser.click("#runs-table tbody tr:nth-child(2) a")
    browser.wait("document.querySelector('h2').textContent === 'er-ace-1'")
    browser.click("#next")
    browser.wait("document.querySelector('h2').textContent === 'er-ace-lider-0'")
    assert browser.run("document.activeElement.id") == "main"  # where a screen reader goes on
    browser.run(
        "(() => { const p = document.getElementById('pick-run'); p.value = '4'; "
        "p.dispatchEvent(new Event('change')); })()"
    )
    browser.wait("document.querySelector('h2').textContent === 'gmed'")
    assert "gmed" in browser.run("document.title")
    browser.run("history.back()")
    browser.wait("document.querySelector('h2').textContent === 'er-ace-lider-0'")
    assert browser.errors() == []


def test_a_run_shows_matrix_curves_memory_and_configuration(
    browser: Any, page: Path, runs: Path
) -> None:
    browser.open(page, "#run-2")
    matrix = RunRecord.read(runs / "er-ace-lider-0").matrix("class_incremental")
    shown = [float(text or "nan") for text in browser.texts("#matrix tbody td")]
    lower = [v if i <= t else None for t, row in enumerate(matrix) for i, v in enumerate(row)]
    expected = [float("nan") if v is None else v for v in lower]
    assert shown == pytest.approx(expected, abs=0.06, nan_ok=True)
    assert {"λ", "c"} <= set(browser.texts("#lipschitz .legend li"))
    assert len(browser.texts("#losses h4")) == 4
    assert len(browser.texts("#memory .picture")) == 20
    url = "getComputedStyle(document.querySelector('.picture')).backgroundImage"
    assert browser.run(url).startswith('url("data:image/png')
    assert "better on its memory" in browser.texts("#gap")[0]
    assert "lider run --config" in browser.texts("#again")[0]
    browser.run(
        "(() => { const o = document.getElementById('other'); o.value = '0'; "
        "o.dispatchEvent(new Event('change')); document.getElementById('only').click(); })()"
    )
    fields = browser.texts("#config tbody th")
    assert fields
    assert all(field.startswith("regularizers.lider") for field in fields)


def test_poisoned_and_edited_samples_are_marked(browser: Any, page: Path) -> None:
    browser.open(page, "#run-4")
    assert any(int(text) > 0 for text in browser.texts("#memory .picture i"))
    names = "[...document.querySelectorAll('.picture')].map((p) => p.ariaLabel).join()"
    assert "edited" in browser.run(names)
    browser.open(page, "#run-6")
    assert 0 < len(browser.texts("#memory .picture.poisoned")) < 20
    assert "poisoned: the label is wrong" in browser.run(names)


def test_focus_shows_a_definition(browser: Any, page: Path) -> None:
    browser.open(page)
    button = "document.querySelector('#methods thead th:nth-child(4) button')"
    tip = "document.getElementById('tip')"
    # a page that has just opened scrolls to its top, and the pointer may rest on another word: both
    # change the tip, so focus until it stays
    browser.wait(
        f"({button}.blur(), {button}.focus(), "
        f"!{tip}.hidden && {tip}.textContent.includes('final forgetting'))"
    )
    described = f"{button}.getAttribute('aria-describedby')"
    assert browser.run(described) == "tip"
    browser.press("Escape")
    browser.wait("document.getElementById('tip').hidden")
    browser.open(page, "#run-0")
    for metric in range(1, 6):
        browser.run(f"document.querySelector('.tile:nth-child({metric}) .term').focus()")
        assert len(browser.texts("#tip")[0]) > 30


def test_charts_work_with_keyboard_and_screen_reader(browser: Any, page: Path) -> None:
    browser.open(page)
    browser.run("document.querySelector('.chart svg[tabindex]').focus()")
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert browser.texts("#live")[0].startswith("tasks seen 2: ")
    assert browser.texts("#tip b") == ["tasks seen 2"]
    browser.resize(500, 900)  # drawn anew, and still where the reader was
    browser.wait("document.activeElement.viewBox.baseVal.width < 500")
    browser.press("ArrowRight")
    assert browser.texts("#live")[0].startswith("tasks seen 3: ")
    label = browser.run("document.querySelector('.chart svg[tabindex]').ariaLabel")
    assert "ends at" in label
    browser.run("document.querySelector('details.data').open = true")
    browser.wait("document.querySelectorAll('details.data td').length === 15")
    curves = "document.querySelectorAll('.chart path.curve').length"
    before = browser.run(curves)
    browser.click(".legend button")
    assert browser.run(curves) == before - 1


def test_every_control_has_a_name(browser: Any, page: Path) -> None:
    for fragment in ("", "#runs", "#run-2", "#compare"):
        browser.open(page, fragment)
        nameless = browser.run(
            "[...document.querySelectorAll('button, a, input, select, svg[role], [role=img]')]"
            ".filter((e) => !(e.ariaLabel || e.textContent.trim() || e.closest('label')))"
            ".map((e) => e.outerHTML)"
        )
        assert nameless == []


def background(browser: Any) -> list[int]:
    colour = browser.run("getComputedStyle(document.body).backgroundColor")
    return [int(part) for part in re.findall(r"\d+", colour)]


def test_dark_and_light(browser: Any, page: Path) -> None:
    media = "Emulation.setEmulatedMedia"
    browser.call(media, features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.open(page)
    assert max(background(browser)) < 60  # as the system likes it
    browser.click("[data-value=light]")
    assert min(background(browser)) > 230
    browser.open(page)
    assert min(background(browser)) > 230  # remembered
    browser.click("[data-value=dark]")
    assert max(background(browser)) < 60
    browser.click("[data-value=auto]")
    browser.call(media, features=[])


def test_a_click_switches_the_setting(browser: Any, page: Path) -> None:
    browser.open(page)
    before = browser.texts(f"#methods {FINAL}")
    browser.click("[data-value=task_incremental]")
    assert browser.texts(f"#methods {FINAL}") != before
    assert any("FWT" in text for text in browser.texts("#methods thead th"))


@pytest.mark.parametrize("fragment", ["", "#runs", "#words", "#run-2", "#run-6"])
def test_a_narrow_window_scrolls_down_only(browser: Any, page: Path, fragment: str) -> None:
    browser.open(page, fragment, width=360)
    browser.wait("document.documentElement.scrollWidth <= 360")


def test_the_page_prints(browser: Any, page: Path) -> None:
    browser.open(page, "#run-2")
    pdf = browser.print()
    assert pdf.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
    assert browser.errors() == []


def test_html_in_names_and_labels_does_no_harm(browser: Any, runs: Path, tmp_path: Path) -> None:
    record = RunRecord.read(runs / "er-ace-lider-0")
    result = json.loads(json.dumps(record.result))
    result["classes"] = [NASTY] * 6
    nasty = RunRecord(record.path, NASTY, record.state, record.config, result)
    write_report([nasty, record], tmp_path / "x.html", title=NASTY)
    for fragment in ("", "#runs", "#run-0"):
        browser.open(tmp_path / "x.html", fragment)
        assert browser.run("window.hacked") is None
        assert browser.texts("h1") == [NASTY]
        assert browser.run("document.querySelectorAll('img').length") == 0
        assert browser.errors() == []
    assert browser.texts("main h2")[0] == NASTY
    assert browser.texts(".memory-class .name")[0].startswith(NASTY)


def test_the_content_policy_blocks_injected_scripts(browser: Any, page: Path) -> None:
    browser.open(page)
    browser.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked=1'; "
        "document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x'; })()"
    )
    assert browser.run("window.hacked") is None
    assert any("Content Security Policy" in text for text in browser.errors())


def test_a_page_opens_at_its_top(browser: Any, page: Path) -> None:
    for fragment in ("#runs", "#run-2", "#words"):
        browser.open(page, fragment, height=300)
        assert browser.run("scrollY") == 0


def test_two_hundred_runs_open_in_a_second(browser: Any, runs: Path, tmp_path: Path) -> None:
    records = [
        RunRecord(record.path, f"{record.name}/{n}", record.state, record.config, record.result)
        for n in range(29)
        for record in read_all([runs])[0]
    ]
    write_report(records, tmp_path / "x.html", memory=False)
    for fragment in ("", "#compare", "#runs"):
        times = []
        for _ in range(3):  # the best of three: other tests may keep the machine busy
            browser.open(tmp_path / "x.html", fragment)
            times.append(browser.run("performance.getEntriesByType('navigation')[0].domComplete"))
        assert min(times) < 1_000, fragment
    assert len(browser.texts("#runs-table tbody th")) == 203
    assert browser.errors() == []


def test_a_run_evaluated_during_tasks_shows_its_curves(browser: Any, tmp_path: Path) -> None:
    small = {"benchmark": "synthetic", "backbone": {"width": 8}, "evaluate": "every:5"}
    run(make_config(small), tmp_path / "run")
    write_report(read_all([tmp_path / "run"])[0], tmp_path / "report.html")
    browser.open(tmp_path / "report.html", "#run-0")
    assert browser.errors() == []
    note = browser.texts("#anytime p.note")[0]
    assert re.fullmatch(r"min-ACC [\d.]+ %, WC-ACC [\d.]+ %, AAA [\d.]+ %", note)
    assert browser.texts("#anytime svg")
