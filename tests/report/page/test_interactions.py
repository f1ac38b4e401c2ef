"""Charts, comparison, hyperparameters and downloads in a real browser, by mouse and keyboard."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from liderlab.analysis.figure_style import COLOURS
from liderlab.report.page.html import write_report
from liderlab.report.run_records import RunRecord, read_all

ACCURACY = ".grid .card:first-child"  # the card of accuracies on the overview
STEPS = "#main .stages .chart"


@pytest.fixture(scope="module")
def page(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_report(read_all([runs])[0], out)
    return out


def changed(record: RunRecord, name: str, faa: float, **fields: Any) -> RunRecord:
    """The run with another accuracy, seed, or learning rate."""
    config, result = (json.loads(json.dumps(part)) for part in (record.config, record.result))
    config["seed"] = fields.get("seed", record.seed)
    config["training"]["lr"] = fields.get("lr", config["training"]["lr"])
    result["class_incremental"]["faa"] = faa
    return RunRecord(record.path, name, "finished", config, result)


def read_csv(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def ticks(browser: Any, card: str) -> list[float]:
    """The numbers on the axis of accuracies."""
    found = browser.texts(f"{card} svg[role] text[text-anchor=end]")
    return [float(text.replace("−", "-")) for text in found]


def test_one_hue_per_method_and_dashes_for_a_regulariser(browser: Any, page: Path) -> None:
    browser.open(page)
    looks = browser.run(
        f"[...document.querySelectorAll('{ACCURACY} .legend button')].map((b) => [b.textContent, "
        "getComputedStyle(b.querySelector('line')).stroke, "
        "b.querySelector('line').getAttribute('stroke-dasharray')])"
    )
    look = {name: (stroke, dash) for name, stroke, dash in looks}
    assert look["er-ace"][0] == look["er-ace + LiDER"][0]
    assert not look["er-ace"][1]
    assert look["er-ace + LiDER"][1]
    assert len({stroke for stroke, _ in look.values()}) == 4  # er, er-ace, gmed, joint


def test_the_light_theme_has_the_colours_of_the_figures(page: Path) -> None:
    light = page.read_text().split(':root[data-theme="dark"]')[0]
    assert tuple(re.findall(r"--c\d: (#\w{6})", light)) == COLOURS


def test_axes_fit_the_data_and_show_0_to_100_on_demand(browser: Any, page: Path) -> None:
    browser.open(page)
    before = ticks(browser, ACCURACY)
    assert before[-1] - before[0] < 100
    browser.click(f"{ACCURACY} .tool.full")
    assert (ticks(browser, ACCURACY)[0], ticks(browser, ACCURACY)[-1]) == (0, 100)
    browser.click(f"{ACCURACY} .tool.full")
    assert ticks(browser, ACCURACY) == before


def test_words_and_a_dot_per_seed(browser: Any, page: Path) -> None:
    browser.open(page)
    sentence = r"LiDER (adds|takes|changes) .* er-ace on synthetic: .*2 seeds"
    assert any(re.match(sentence, text) for text in browser.texts("#headline li"))
    assert len(browser.texts("#gains circle.seed")) == 2
    assert len(browser.texts(".grid .card:nth-child(2) circle.seed")) == 7


def test_a_wide_interval_is_cut_with_a_mark(browser: Any, runs: Path, tmp_path: Path) -> None:
    plain, treated = (RunRecord.read(runs / name) for name in ("er-ace-0", "er-ace-lider-0"))
    values = ((plain, (50.0, 50.0)), (treated, (51.0, 52.0)))  # 1.5 ± 6.35
    records = [
        changed(record, f"{record.name}{seed}", faa, seed=seed)
        for record, pair in values
        for seed, faa in enumerate(pair)
    ]
    write_report(records, tmp_path / "x.html", memory=False)
    browser.open(tmp_path / "x.html")
    assert len(browser.texts("#gains path.clipped")) == 2
    x = "[...document.querySelectorAll('#gains circle.seed')].map((c) => c.cx.baseVal.value)"
    places, width = (
        browser.run(x),
        browser.run("document.querySelector('#gains svg').clientWidth"),
    )
    assert abs(places[1] - places[0]) > 0.15 * width
    assert browser.texts("#headline li")[0] == (
        "LiDER adds 1.5 ± 6.4 points to er-ace on synthetic: not distinguishable from none with 2 "
        "seeds."
    )


def test_runs_are_compared_curve_over_curve(browser: Any, page: Path) -> None:
    browser.open(page, "#compare-0-2-3")
    assert len(browser.texts(".key li")) == 3
    curves = f"document.querySelector('{STEPS}').querySelectorAll('path.curve').length"
    assert browser.run(curves) == 3
    browser.click("[data-run='1']")
    assert browser.run(curves) == 4
    assert browser.run("location.hash") == "#compare-0-2-3-1"
    browser.click(".group-button")  # none of the seeds of an experiment, then all of them
    assert browser.run(curves) == 2
    browser.click(".group-button")
    assert browser.run(curves) == 4
    titles = browser.texts("#main h2")
    assert {"Loss terms", "Lipschitz constants λ by stage", "Targets c by stage"} <= set(titles)
    assert browser.errors() == []


def test_dragging_zooms_all_charts_and_a_button_shows_everything(browser: Any, page: Path) -> None:
    browser.open(page, "#compare-0-2")
    first = (
        f"(() => {{ const d = document.querySelector('{STEPS} path.curve').getAttribute('d'); "
        "return d; })()"
    )
    before = browser.run(first)
    browser.drag(f"{STEPS} svg[role]", (0.4, 0.5), (0.7, 0.5))
    zoomed = f"[...document.querySelectorAll('{STEPS} .reset')].every((b) => !b.hidden)"
    browser.wait(zoomed)
    assert browser.run(first) != before
    browser.click("#whole")
    assert browser.run(first) == before
    browser.run(f"document.querySelector('{STEPS} svg[role]').focus()")
    browser.press("+")
    assert browser.run(zoomed)
    browser.press("0")
    assert browser.run(first) == before


def test_smoothing_and_logarithm(browser: Any, page: Path) -> None:
    browser.open(page, "#compare-2-3")
    assert browser.texts(f"{STEPS} path.raw") == []
    ends = "[...document.querySelectorAll('svg[role]')].map((s) => s.ariaLabel).join()"
    before = browser.run(ends)
    browser.run(
        "(() => { const s = document.getElementById('smooth'); s.value = 0.9; "
        "s.dispatchEvent(new Event('input')); })()"
    )
    assert len(browser.texts(f"{STEPS} path.raw")) == len(browser.texts(f"{STEPS} path.curve")) / 2
    assert browser.run(ends) != before
    path = f"document.querySelector('{STEPS} path.curve:not(.raw)').getAttribute('d')"
    linear = [float(y) for y in re.findall(r",([\d.]+)", browser.run(path))]
    browser.click("#log")
    log = [float(y) for y in re.findall(r",([\d.]+)", browser.run(path))]
    assert log != linear
    assert sorted(range(len(log)), key=log.__getitem__) == sorted(
        range(len(log)), key=linear.__getitem__
    )
    assert browser.errors() == []


def test_hovering_reads_all_curves(browser: Any, page: Path) -> None:
    browser.open(page, "#compare-0-2")
    browser.drag(f"{STEPS} svg[role]", (0.5, 0.5), (0.5, 0.5))
    browser.wait("!document.getElementById('tip').hidden")
    assert re.match(r"step \d+er-ace-", browser.texts("#tip")[0])
    assert len(browser.texts("#tip .line")) == 2
    crosses = f"document.querySelectorAll('{STEPS} line.cross').length"
    assert browser.run(crosses) == len(browser.texts(STEPS))  # in every chart


def test_confusion_by_class_and_task(browser: Any, page: Path, runs: Path) -> None:
    browser.open(page, "#run-2")
    record = RunRecord.read(runs / "er-ace-lider-0")
    assert record.result
    counts = record.result["class_incremental"]["confusion_matrix"]
    table = "#confusion details"
    browser.run(f"document.querySelector('{table}').open = true")
    browser.wait(f"document.querySelectorAll('{table} td').length === 36")
    shown = [int(text) for text in browser.texts(f"{table} td")]
    assert shown == [value for row in counts for value in row]
    browser.click("#confusion [data-unit=task]")
    browser.run(f"document.querySelector('{table}').open = true")
    browser.wait(f"document.querySelectorAll('{table} td').length === 9")
    assert sum(int(text) for text in browser.texts(f"{table} td")) == sum(map(sum, counts))
    assert "taken for" in browser.texts("#confusion .mistakes")[0]


@pytest.fixture(scope="module")
def sweep(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six learning rates; the accuracy is ten times the rate's number."""
    record = RunRecord.read(runs / "er-ace-0")
    rates = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    out = tmp_path_factory.mktemp("sweep") / "report.html"
    trials = [changed(record, f"t{n}", 10.0 * n, lr=rate) for n, rate in enumerate(rates)]
    write_report(trials, out, memory=False)
    return out


def test_hyperparameters_on_parallel_axes(browser: Any, sweep: Path, page: Path) -> None:
    browser.open(sweep, "#search")
    assert len(browser.texts("#parallel path.trial")) == 6
    browser.drag("[data-axis='0']", (0.5, 0.0), (0.5, 0.5))  # the upper half: the larger rates
    browser.wait("document.querySelectorAll('#parallel path.trial.away').length === 3")
    browser.drag("[data-axis='0']", (0.5, 0.5), (0.5, 0.5))
    browser.wait("document.querySelectorAll('#parallel path.trial.away').length === 0")
    first = browser.texts("#main table tbody tr:first-child > *")
    assert first[1:3] == ["0.3", "50.00"]
    browser.open(page)
    assert "Hyperparameters" not in browser.texts("nav a")  # methods alone are no search


def test_tables_download_as_csv(browser: Any, page: Path, tmp_path: Path) -> None:
    browser.open(page)
    rows = read_csv(browser.download(".card.long .tool", tmp_path))
    assert [row["Method"] for row in rows] == browser.texts("#methods tbody th")
    shown = [float(text.split()[0]) for text in browser.texts("#methods tbody tr > :nth-child(3)")]
    assert [float(row["FAA"]) for row in rows] == pytest.approx(shown, abs=0.005)
    assert rows[0].keys() >= {"FAA std", "FAA ± 95 %", "LiDER's gain p"}
    browser.open(page, "#run-2")
    nameless = browser.run(
        "[...document.querySelectorAll('table')].filter((t) => !t.closest('.card')"
        ".querySelector('[aria-label^=\"Download as CSV\"]')).map((t) => t.outerHTML)"
    )
    assert nameless == []


def test_charts_download_as_svg_that_needs_no_style(
    browser: Any, page: Path, tmp_path: Path
) -> None:
    for fragment in ("", "#compare", "#run-2"):
        browser.open(page, fragment)
        without = "[...document.querySelectorAll('.chart')].filter((c) => !c.querySelector('{}'))"
        wanted = '[aria-label^="Download as SVG"]'
        assert browser.run(without.format(wanted) + ".length") == 0
    browser.open(page)
    text = browser.download(f"{ACCURACY} .tool[aria-label*=SVG]", tmp_path).read_text()
    assert not re.search(r"var\(|color-mix|class=|style=", text)
    root = ElementTree.fromstring(text)
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"er-ace", "er-ace + LiDER", "tasks seen"} <= set(words)
    assert any((word or "").startswith("Mean accuracy on the tasks") for word in words)


def test_a_csv_cell_is_no_formula(browser: Any, runs: Path, tmp_path: Path) -> None:
    record = RunRecord.read(runs / "er-ace-0")
    write_report([changed(record, '=1+1,"x"', 5.0)], tmp_path / "x.html", memory=False)
    browser.open(tmp_path / "x.html", "#runs")
    (row,) = read_csv(browser.download(".tool", tmp_path))
    assert row["Run"] == '\'=1+1,"x"'


def test_a_wide_table_shows_that_it_scrolls(browser: Any, page: Path) -> None:
    browser.open(page, "#runs", width=400)
    browser.wait("document.querySelector('.scroller').matches('.more-right:not(.more-left)')")
    browser.run("document.querySelector('.scroll').scrollLeft = 9999")
    browser.wait("document.querySelector('.scroller').matches('.more-left:not(.more-right)')")
    assert browser.run("document.querySelector('.scroll').tabIndex") == 0  # for the keyboard
    browser.open(page, "#runs", width=1600)
    browser.wait("!document.querySelector('.scroller').matches('.more-right, .more-left')")


@pytest.mark.parametrize("width", [400, 800, 1200, 1600])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_every_width_in_both_themes(
    browser: Any, page: Path, sweep: Path, width: int, theme: str
) -> None:
    media = "Emulation.setEmulatedMedia"
    browser.call(media, features=[{"name": "prefers-color-scheme", "value": theme}])
    for file, fragment in ((page, ""), (page, "#compare"), (page, "#run-2"), (sweep, "#search")):
        browser.open(file, fragment, width=width)
        browser.wait(f"document.documentElement.scrollWidth <= {width}")
        assert browser.errors() == [], fragment
    browser.call(media, features=[])
