"""`--evaluate every:5` in whole runs: the files it leaves, and the weights it does not touch."""

import json
from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.report.terminal.run_comparison import Comparison
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare, unequal

SETTINGS = ("class_incremental", "task_incremental")


def config(evaluate: str, **changes: Any) -> RunConfig:
    small = {"benchmark": "synthetic", "backbone": {"width": 8}, "method": "er-ace"}
    return make_config(small, {"evaluate": evaluate, **changes})


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("runs") / "measured"
    run(config("every:5:10"), path)
    return RunFolder(path)


def test_training_is_the_same_to_the_bit(measured: RunFolder, tmp_path: Path) -> None:
    run(config("every"), tmp_path)
    plain, state = RunFolder(tmp_path).state(), measured.state()
    parts = ("network", "memory", "optimizer", "generators", "evaluation", "cursor", "steps")
    assert not [leaf for part in parts for leaf in unequal(plain[part], state[part], part)]
    for setting in SETTINGS:
        mine, other = (folder.result()[setting] for folder in (measured, RunFolder(tmp_path)))
        assert {k: v for k, v in mine.items() if k not in ("min_acc", "wc_acc", "aaa")} == other


def test_the_lines_give_the_metrics_of_the_result(measured: RunFolder) -> None:
    lines = measured.metrics()
    points = [line.get("anytime", line) for line in lines if line["kind"] != "step"]
    assert [(p["step"], p["task"]) for p in points] == [
        (5, 0),
        (6, 0),
        (10, 1),
        (12, 1),
        (15, 2),
        (18, 2),
    ]
    for setting in SETTINGS:
        rows = [(p[setting], p["task"]) for p in points]
        lowest = [min(row[i] for row, t in rows if t > i) for i in (0, 1)]
        result = measured.result()[setting]
        assert result["min_acc"] == pytest.approx(sum(lowest) / 2)
        assert result["wc_acc"] == pytest.approx((sum(lowest) + rows[-1][0][-1]) / 3)
        assert result["aaa"] == pytest.approx(sum(sum(r) / len(r) for r, _ in rows) / len(rows))


def test_a_killed_run_ends_the_same(measured: RunFolder, tmp_path: Path) -> None:
    class Crash(BaseException):
        """Stands for a killed process."""

    events = 0

    def crash(*_: object) -> None:
        nonlocal events
        events += 1
        if events % 4 == 0:
            raise Crash

    killed = config("every:5:10", checkpoint_every=1)
    kills = 0
    while not RunFolder(tmp_path).finished:
        try:
            run(killed, tmp_path, existing="resume", listener=crash)
        except Crash:
            kills += 1
    assert kills > 4
    assert compare(measured, RunFolder(tmp_path)) == []


def test_a_comparison_shows_them_where_a_run_has_them(measured: RunFolder, tmp_path: Path) -> None:
    both = Comparison.of(measured.path, measured.path)
    assert "WC-ACC" in repr(both)
    assert both.difference("aaa").mean == 0
    assert json.dumps(both.as_tree()["class_incremental"]["min_acc"]["difference"])
    run(config("last"), tmp_path)
    assert "WC-ACC" not in repr(Comparison.of(tmp_path, tmp_path))
