"""Budgets, early stopping and several updates in whole runs: killed anywhere, they end the same."""

from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.errors import UserError
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare

CASES: dict[str, dict[str, Any]] = {
    "steps": {"budget": {"steps": 17}},
    "passes": {"budget": {"passes": 600}},
    "patience": {"epochs": 4, "patience": 1},
    "updates": {"updates_per_batch": 2},
}


class Crash(BaseException):
    """Stands for a killed process."""


def config(training: dict[str, Any], **changes: Any) -> RunConfig:
    small = {"benchmark": "synthetic", "backbone": {"width": 8}, "method": "der++"}
    return make_config(small, {"regularizers": {"lider": {}}, "training": training, **changes})


@pytest.mark.parametrize("case", CASES)
def test_a_killed_run_ends_the_same(tmp_path: Path, case: str) -> None:
    whole, killed = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "killed")
    storage = {"memory": {"storage": "disk"}} if case == "updates" else {}
    run(config(CASES[case], **storage), whole.path)
    events, kills = 0, 0

    def crash(*_: object) -> None:
        nonlocal events
        events += 1
        if events % 5 == 0:
            raise Crash

    while not killed.finished:
        try:
            often = config(CASES[case], checkpoint_every=1, **storage)
            run(often, killed.path, existing="resume", listener=crash)
        except Crash:
            kills += 1
    assert kills > 2
    assert compare(whole, killed) == []


def test_the_result_tells_the_cost(tmp_path: Path) -> None:
    result = run(config({"budget": {"passes": 600}}), tmp_path)
    assert 600 <= result["passes"] < 600 + 3 * 16
    assert 0 < result["seconds_training"] <= result["seconds"]
    speed = result["passes"] / result["seconds_training"]
    assert result["images_per_second"] == pytest.approx(speed, rel=0.2)  # seconds are rounded


def test_the_result_tells_where_early_stopping_went_back_to(tmp_path: Path) -> None:
    result = run(config({"epochs": 4, "patience": 1}), tmp_path)
    fits = result["early_stopping"]
    assert [fit["task"] for fit in fits] == [0, 1, 2]
    assert all(1 <= fit["best"] <= fit["epochs"] <= 4 for fit in fits)
    assert sum(result["data"]["train"]) < 6 * 24 <= sum(result["data"]["train"]) + 6 * 3


def test_seconds_go_on_after_a_kill(tmp_path: Path) -> None:
    """The number of steps depends on the clock; the seconds spent before the kill count."""
    budget = config({"budget": {"seconds": 0.9}}, checkpoint_every=1)
    events = 0

    def crash(work: Any, event: object) -> None:
        nonlocal events
        events += 1
        if work.loop.cost.seconds > 0.45 and events > 0:
            events = -(10**9)
            raise Crash

    with pytest.raises(Crash):
        run(budget, tmp_path, listener=crash)
    before = RunFolder(tmp_path).state()["seconds_training"]
    result = run(budget, tmp_path, existing="resume")
    assert 0.3 < before < result["seconds_training"]
    assert 0.9 <= result["seconds_training"] < 5


def test_a_budget_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="2 steps is too small for 3 tasks"):
        run(config({"budget": {"steps": 2}}), tmp_path / "x")
    assert not (tmp_path / "x").exists()
