"""A study in a SQLite file: limits, resumed trials, pruning."""

from __future__ import annotations

from pathlib import Path

import pytest

from liderlab.sweeps.optuna_study import OptunaStudy
from liderlab.sweeps.search_space import Space, ValueList, ValueRange

pytest.importorskip("optuna", reason="needs Optuna: pip install 'liderlab[search]'")
pytestmark = pytest.mark.filterwarnings("ignore:.*:optuna.exceptions.ExperimentalWarning")
SPACE: Space = {"training.lr": ValueRange(0.01, 1.0, log=True), "memory.size": ValueList((10, 20))}


def study(folder: Path, home: str, space: Space = SPACE) -> OptunaStudy:
    opened = OptunaStudy(f"sqlite:///{folder / 'search.db'}", "search", space, home)
    opened.sample_by("tpe", seed=0, prune_after=1)
    return opened


def test_searches_share_the_limit_and_resume_only_their_own_trials(tmp_path: Path) -> None:
    one, two = study(tmp_path, "one"), study(tmp_path, "two")
    first, second = one.ask(2), two.ask(2)
    assert first is not None
    assert second is not None
    assert one.ask(2) is None
    one.report(first, 0, 50.0)
    wider: Space = {**SPACE, "method.alpha": ValueList((0.1, 0.2))}  # fields may be added
    (resumed,) = study(tmp_path, "one", wider).unfinished()
    assert (resumed.optuna.number, resumed.values) == (first.optuna.number, first.values)
    assert resumed.reported == {0}


def test_a_pruned_trial_is_finished_and_is_not_resumed(tmp_path: Path) -> None:
    opened = study(tmp_path, "one")
    good, bad = opened.ask(9), opened.ask(9)
    assert good is not None
    assert bad is not None
    assert not opened.report(good, 0, 80.0)
    opened.tell(good, 90.0)
    assert opened.report(bad, 0, 10.0)
    assert opened.unfinished() == []
    assert opened.best() == (90.0, good.values)
    assert [row["state"] for row in opened.rows()] == ["complete", "pruned"]


def test_no_connection_stays_open(tmp_path: Path) -> None:
    opened = study(tmp_path, "one")
    trial = opened.ask(1)
    assert trial is not None
    opened.tell(trial, 50.0)
    assert opened.best() == (50.0, trial.values)
    files = Path("/proc/self/fd")
    if not files.is_dir():
        pytest.skip("needs /proc")
    database = str(tmp_path / "search.db")
    assert not [
        link for link in files.iterdir() if link.exists() and str(link.resolve()) == database
    ]
