"""Every view names the setting of its accuracies: domain-incremental where tasks are domains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from liderlab.api.run_result import RunResult
from liderlab.config.merging import make_config
from liderlab.registry import Entry
from liderlab.report.page.html import write_report
from liderlab.report.run_records import RunRecord, read_all
from liderlab.report.terminal.run_comparison import Comparison
from liderlab.runs.execute import run
from liderlab.runs.trackers import TRACKERS

SMALL: dict[str, Any] = {
    "benchmark": {"name": "rotated-digits", "tasks": 2, "train_per_class": 4, "test_per_class": 2},
    "method": "er",
    "backbone": {"name": "convnet-small", "width": 8},
    "training": {"epochs": 1},
    "memory": {"size": 20},
    "evaluate": "every:2",
    "threads": 1,
}
PAGES = ("", "#runs", "#run-0", "#compare-0-1")
SHOWN = "document.body.innerText + [...document.querySelectorAll('svg[role]')].map((s) => s.getAttribute('aria-label') + s.textContent)"  # noqa: E501


@pytest.fixture(scope="module")
def domains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on domains: read only."""
    folder = tmp_path_factory.mktemp("domains")
    for seed in (0, 1):
        run(make_config(SMALL, {"seed": seed}), folder / f"er-seed{seed}")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "runs {0}",
        "show {0}/er-seed0",
        "watch {0} --once",
        "watch {0}/er-seed0 --once",
        "compare {0}/er-seed0 {0}/er-seed1",
        "runs {0} --json",
        "watch {0} --json",
    ],
)
def test_the_terminal(lider: Any, domains: Path, command: str) -> None:
    code, out, err = lider(*command.format(domains).split())
    assert code == 0, err
    assert "domain-incremental" in out
    assert "class-incremental" not in out
    assert "task-incremental" not in out


def test_two_settings_in_one_list(lider: Any, domains: Path, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "all/a").symlink_to(domains / "er-seed0")
    (tmp_path / "all/b").symlink_to(runs / "poisoned")
    _, out, _ = lider("runs", "all/a", "--json")
    assert [row["setting"] for row in json.loads(out)] == ["domain-incremental"]
    code, out, err = lider("compare", "all/a", "all/b")
    assert code == 0, err
    assert "A: domain-incremental" in out
    assert "B: class-incremental" in out
    assert "task-incremental" not in out


def test_python(domains: Path) -> None:
    sides = [domains / f"er-seed{seed}" for seed in (0, 1)]
    result, comparison = RunResult.read(sides[0]), Comparison.of(*sides)
    assert "domain-incremental FAA" in repr(result)
    texts = [result._repr_html_(), repr(comparison), comparison._repr_html_()]
    assert all("domain-incremental" in text for text in texts)
    assert not any("class-incremental" in text for text in texts)
    assert comparison.as_tree()["setting"] == ["domain-incremental"] * 2


def test_progress_and_trackers(lider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()

    class Listener:
        def __init__(self, *_: object) -> None: ...

        def log(self, step: int, values: Mapping[str, float]) -> None:
            names.update(values)

        def close(self, finished: bool) -> None: ...

    monkeypatch.setitem(TRACKERS, "wandb", Entry(Listener, "listens"))
    monkeypatch.setattr("liderlab.runs.trackers.find_spec", lambda name: True)
    Path("small.yaml").write_text(json.dumps(SMALL))
    code, out, err = lider("run", "--config", "small.yaml", "--tracker", "wandb", "--out", "x")
    assert code == 0, err
    assert "task 2/2 done: domain-incremental accuracy so far" in err
    assert "class-incremental" not in out + err
    wanted = {f"{part}domain-incremental/mean" for part in ("", "anytime/")}
    assert names >= wanted | {"final/domain-incremental/faa", "domain-incremental/task 2"}
    assert not any("class-incremental" in name or "task-incremental" in name for name in names)


def test_the_report(browser: Any, domains: Path, tmp_path: Path) -> None:
    write_report(read_all([domains])[0], tmp_path / "x.html")
    for page in PAGES:
        browser.open(tmp_path / "x.html", page)
        shown = browser.run(SHOWN)
        assert "domain-incremental" in shown
        assert "class-incremental" not in shown
        assert "task-incremental" not in shown
        assert browser.texts("#setting") == ["domain-incremental"]
    assert browser.errors() == []


def test_the_report_of_both_settings(
    browser: Any, domains: Path, runs: Path, tmp_path: Path
) -> None:
    records = [RunRecord.read(domains / "er-seed0"), RunRecord.read(runs / "poisoned")]
    write_report(records, tmp_path / "x.html")
    browser.open(tmp_path / "x.html")
    assert browser.texts("[data-value$=incremental]") == [
        "domain-incremental, class-incremental",
        "domain-incremental, task-incremental",
    ]
    titles = " ".join(browser.texts(".card h2"))
    assert "rotated-digits, 2 tasks, domain-incremental" in titles
    assert "synthetic, 3 tasks, class-incremental" in titles
    columns = [text.strip() for text in browser.texts("#methods thead th")]
    assert "Setting" in [column.split()[0] for column in columns]
    browser.click("[data-value=task_incremental]")
    browser.run("location.hash = '#run-0'")
    browser.wait("document.querySelector('.heading')")
    assert "domain-incremental" in browser.texts(".heading .sub")[0]
