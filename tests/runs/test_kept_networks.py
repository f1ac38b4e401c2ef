"""`keep_tasks`: the network as it was after each task."""

from pathlib import Path

import pytest

import liderlab
from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.runs.folder import RunFolder
from liderlab.runs.load import load

TREE = {"benchmark": {"name": "synthetic"}, "training": {"epochs": 1}, "threads": 1}


def test_the_network_after_every_task_is_kept(tmp_path: Path) -> None:
    config, run = make_config(TREE | {"keep_tasks": True}), tmp_path / "run"
    liderlab.run(config, run)
    assert len(list((run / "tasks").iterdir())) == 3
    last, final = load(run, after_task=2).state_dict(), load(run).state_dict()
    assert all(last[name].equal(value) for name, value in final.items())
    first = load(run, after_task=0).state_dict()
    assert any(not first[name].equal(value) for name, value in final.items())
    RunFolder(run).begin(config)  # a fresh start removes what an earlier run kept
    assert not list((run / "tasks").iterdir())


def test_a_run_that_kept_none_says_how(tmp_path: Path) -> None:
    liderlab.run(make_config(TREE), tmp_path / "run")
    with pytest.raises(UserError, match="keep_tasks=true"):
        load(tmp_path / "run", after_task=0)
