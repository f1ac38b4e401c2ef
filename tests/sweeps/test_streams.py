"""Sweeps and searches over streams, budgets and early stopping."""

import json
from pathlib import Path
from typing import Any

import pytest

from liderlab.runs.folder import RunFolder

TINY = {
    "benchmark": {"name": "synthetic", "train_per_class": 8, "test_per_class": 4},
    "backbone": {"name": "mlp", "width": 8},
    "memory": {"size": 20},
    "training": {"epochs": 1},
    "threads": 1,
}


@pytest.mark.usefixtures("inline_engine")
def test_a_sweep_over_streams_and_budgets(lider: Any, write: Any) -> None:
    points = [
        {"name": "unequal", "benchmark": {"tasks": None, "base": 4}},
        {"name": "blurry", "benchmark": {"blurry": 0.2, "noise": 0.1, "imbalance": 0.5}},
        {"name": "free", "benchmark": {"task_free": True}},
        {"name": "budget", "training": {"budget": {"steps": 6}, "updates_per_batch": 2}},
        {"name": "patient", "training": {"epochs": 2, "patience": 1}},
    ]
    write("sweep.yaml", {"base": TINY, "points": points, "seeds": [3]})
    code, out, err = lider("sweep", "sweep.yaml", "--out", "s", "--workers", "1", "--json")
    assert code == 0, err
    folders = sorted(Path("s/runs").iterdir())
    assert len(folders) == len(points)
    results = [RunFolder(folder).result() for folder in folders]
    assert len({json.dumps(result["data"]["fingerprint"]) for result in results}) >= 3
    assert json.loads(out)


@pytest.mark.usefixtures("inline_engine")
def test_a_search_on_a_blurry_stream(lider: Any, write: Any) -> None:
    pytest.importorskip("optuna", reason="needs Optuna: pip install 'liderlab[search]'")
    blurry = TINY["benchmark"] | {"blurry": 0.2, "imbalance": 0.5}  # type: ignore[operator]
    write("base.yaml", TINY | {"benchmark": blurry})
    write("space.yaml", {"training.updates_per_batch": [1, 2]})
    command = "search --config base.yaml --space space.yaml --sampler grid --workers 1 --out s"
    code, _, err = lider(*command.split())
    assert code == 0, err
    tried = [RunFolder(Path("s/trials") / str(n)).result()["config"] for n in (0, 1)]
    assert sorted(config["training"]["updates_per_batch"] for config in tried) == [1, 2]
    assert all(config["benchmark"]["blurry"] == 0.2 for config in tried)
