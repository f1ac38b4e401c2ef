"""`liderlab.sweep` and `liderlab.compare`: as the commands, with results to work with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import liderlab
from liderlab.api.many_runs import SweepResult, _tree
from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.report.terminal.sweep_progress import SweepDisplay
from liderlab.runs.planned_run import PlannedRun
from liderlab.sweeps.sweep_file import read_sweep

BASE = {"benchmark": "synthetic", "tasks": 2, "epochs": 1, "buffer": 20, "threads": 1}
POINTS = [{"name": "plain"}, {"name": "lider", "lider": True}]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    out = tmp_path_factory.mktemp("sweeps") / "a&b"
    return liderlab.sweep(
        {"method": ["er"]}, points=POINTS, seeds=2, base=BASE, out=out, progress=False
    )


def test_sweep_returns_runs_and_a_summary(swept: SweepResult) -> None:
    assert swept.groups == ["plain,er", "lider,er"]
    assert [run.label for run in swept.runs] == ["er", "er", "er + LiDER", "er + LiDER"]
    assert [run.seed for run in swept["lider,er"]] == [0, 1]
    mean = sum(run.faa for run in swept["plain,er"]) / 2
    assert swept.summary[0]["faa_mean"] == pytest.approx(mean)
    assert not swept.failed
    written = {"runs", "runs.csv", "summary.csv", "report.html"}
    assert written <= set(os.listdir(swept.folder))


def test_sweep_shows_itself_escaped(swept: SweepResult) -> None:
    assert "4 of 4 runs done; groups plain,er, lider,er" in repr(swept)
    page = swept._repr_html_()
    assert "a&amp;b" in page
    assert f"{swept.summary[0]['faa_mean']:.2f} ±" in page


def test_a_finished_sweep_is_not_repeated(swept: SweepResult) -> None:
    again = liderlab.sweep(
        {"method": ["er"]}, points=POINTS, seeds=2, base=BASE, out=swept.folder, progress=False
    )
    assert again == swept


def test_a_failed_run_is_named(swept: SweepResult) -> None:
    row = {**swept.rows[0], "state": "failed", "error": "disk <full>"}
    result = SweepResult(swept.folder, [row, *swept.rows[1:]], swept.summary, [])
    assert result.failed == [row]
    assert len(result.runs) == 3
    assert "failed: disk &lt;full&gt;" in result._repr_html_()


def test_unknown_group_is_refused_with_the_nearest_name(swept: SweepResult) -> None:
    with pytest.raises(UserError, match="unknown group 'plain,err': did you mean 'plain,er'"):
        swept["plain,err"]


def test_keywords_and_fields_vary_alike(tmp_path: Path) -> None:
    grid = {"lider": [False, {"alpha": 0.2}], "buffer": (10, 20), "training.lr": [0.1]}
    base = {"training": {"momentum": 0.5}, "epochs": 2, "method": {"name": "der", "alpha": 0.3}}
    runs = read_sweep(_tree(grid=grid, base=base, seeds=range(1), points=None), tmp_path, 1)
    found = [run.plan.config for run in runs]
    assert [config.memory.size for config in found] == [10, 20, 10, 20]
    assert [list(config.regularizers) for config in found] == [[], [], ["lider"], ["lider"]]
    assert found[-1].regularizers["lider"]["alpha"] == 0.2
    assert {config.training.epochs for config in found} == {2}
    assert {config.training.momentum for config in found} == {0.5}
    assert {config.training.lr for config in found} == {0.1}
    assert found[0].method.options["alpha"] == 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": {"bufer": [1]}}, "unknown field 'bufer'"),
        ({"grid": {"buffer": 1}}, "grid: buffer must be a list of values, not 1"),
        ({"grid": ["buffer"]}, "grid must be a dict of names and values"),
        ({"base": {"method": "er_ace"}}, "did you mean 'er-ace'"),
        ({"points": [3]}, "point 1 must hold fields"),
        ({"seeds": 0}, "seeds must be a number of seeds"),
        ({"engine": "rays"}, "unknown engine 'rays': did you mean 'ray'"),
        ({"workers": 0}, "workers must be at least 1"),
    ],
)
def test_bad_sweeps_are_refused_before_anything_is_written(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        liderlab.sweep(**arguments, out=tmp_path / "x")
    assert not os.listdir(tmp_path)


def test_compare_pairs_seeds_as_the_command_does(
    swept: SweepResult, lider: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    comparison = liderlab.compare(swept["plain,er"], swept["lider,er"])
    between = comparison.difference("faa")
    assert between is not None
    pairs = zip(swept["plain,er"], swept["lider,er"], strict=True)
    assert between.mean == pytest.approx(sum(b.faa - a.faa for a, b in pairs) / 2)
    assert between.n == 2
    assert between.half is not None
    for group in ("plain,er", "lider,er"):
        for run in swept[group]:
            shutil.copytree(run.folder, tmp_path / group / str(run.seed))
    sides = [str(tmp_path / group) for group in ("plain,er", "lider,er")]
    typed = liderlab.compare(*sides)
    assert typed.difference("faa") == between
    assert lider("compare", *sides)[1] == str(typed)


def test_comparison_shows_itself(swept: SweepResult) -> None:
    plain, with_lider = swept.runs[0], swept.runs[2]
    comparison = liderlab.compare(plain, with_lider.folder)
    assert "A: er (" in comparison._repr_html_()
    assert "a&amp;b" in comparison._repr_html_()
    assert f"{with_lider.faa - plain.faa:+.2f}" in comparison._repr_html_()
    assert "regularizers.lider" in str(comparison)


def test_bad_comparisons_are_refused(swept: SweepResult) -> None:
    with pytest.raises(UserError, match="differ in more than their seeds"):
        liderlab.compare(swept.runs, swept.runs)
    with pytest.raises(UserError, match="there is no run to compare"):
        liderlab.compare([], swept.runs[0])
    with pytest.raises(UserError, match="is not a folder"):
        liderlab.compare("nowhere", swept.runs[0])
    comparison = liderlab.compare(swept.runs[0], swept.runs[1])
    with pytest.raises(UserError, match="unknown metric 'fa': did you mean 'faa'"):
        comparison.difference("fa")
    with pytest.raises(UserError, match="unknown setting 'task'"):
        comparison.difference("faa", "task")


def test_damaged_runs_are_left_out_with_a_warning(swept: SweepResult, tmp_path: Path) -> None:
    first = swept.runs[0]
    side = tmp_path / "side"
    side.mkdir()
    (side / "a").symlink_to(first.folder)
    (side / "b").mkdir()
    (side / "b" / "config.yaml").write_text("[")
    with pytest.warns(UserWarning, match="left out: .*config.yaml"):
        comparison = liderlab.compare([side / "a", side / "b"], first)
    assert comparison.difference("faa") is not None


def test_a_notebook_gets_one_bar_for_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            shown.append(content["text/plain"])

    pytest.importorskip("IPython.display")
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: Handle())
    plans = [PlannedRun(name, make_config({}), tmp_path / name) for name in ("a", "b")]
    with SweepDisplay(Console(force_jupyter=True), plans) as display:
        display({"a": "running", "b": "waiting"})
        display({"a": "failed", "b": "running"})
    assert shown[0].startswith("2 runs: 1 running, 1 waiting")
    assert shown[1].startswith("2 runs: 1 failed, 1 running")
    assert shown[1].endswith("50%")
    assert capfd.readouterr() == ("", "")
