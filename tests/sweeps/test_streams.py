"""Sweeps and searches over streams, budgets and early stopping."""

import json
from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare

TINY = {
    "benchmark": {"name": "synthetic", "train_per_class": 8, "test_per_class": 4},
    "backbone": {"name": "mlp", "width": 8},
    "memory": {"size": 20},
    "training": {"epochs": 1},
    "threads": 1,
}
STREAMS: dict[str, dict[str, Any]] = {
    "unequal": {"benchmark": {"tasks": [3, 1, 2]}},
    "base": {"benchmark": {"tasks": None, "base": 4}},
    "domains": {"benchmark": {"name": "permuted-digits", "tasks": 2}},
    "blurry": {"benchmark": {"blurry": 0.2}},
    "tail": {"benchmark": {"imbalance": 0.5}},
    "noise": {"benchmark": {"noise": 0.1}},
    "free": {"benchmark": {"task_free": True, "blurry": 0.2}},
    "steps": {"training": {"budget": {"steps": 6}}},
    "passes": {"training": {"budget": {"passes": 100}}},
    "patient": {"training": {"epochs": 2, "patience": 1}},
    "online": {"training": {"batch_size": 10, "updates_per_batch": 2}},
    "anytime": {"evaluate": "every:2"},
    "disk": {"benchmark": {"blurry": 0.2}, "memory": {"storage": "disk"}},
}


@pytest.mark.slow
def test_a_sweep_in_processes_has_the_bits_of_single_runs(lider: Any, write: Any) -> None:
    points = [{"name": name, **fields} for name, fields in STREAMS.items()]
    write("sweep.yaml", {"base": TINY, "points": points, "seeds": [3]})
    code, _, err = lider("sweep", "sweep.yaml", "--out", "s", "--workers", "2")
    assert code == 0, err
    folders = list(Path("s/runs").iterdir())
    assert len(folders) == len(STREAMS)
    for folder in folders:
        swept = RunFolder(folder)
        run(swept.config(), Path("alone") / folder.name)
        assert compare(RunFolder(Path("alone") / folder.name), swept) == []
    code, out, err = lider("sweep", "sweep.yaml", "--out", "s", "--workers", "2", "--json")
    assert code == 0, err  # all of them are skipped
    assert len(json.loads(out)["runs"]) == len(STREAMS)


@pytest.mark.slow
@pytest.mark.usefixtures("inline_engine")
@pytest.mark.parametrize("stream", STREAMS)
def test_a_search_on_every_stream(stream: str, lider: Any, write: Any) -> None:
    pytest.importorskip("optuna", reason="needs Optuna: pip install 'liderlab[search]'")
    base = make_config(TINY, STREAMS[stream]).model_dump(mode="json", exclude_unset=True)
    write("base.yaml", base)
    write("space.yaml", {"training.lr": [0.05, 0.1]})
    command = "search --config base.yaml --space space.yaml --sampler grid --workers 1 --out s"
    code, _, err = lider(*command.split())
    assert code == 0, err
    tried = [RunFolder(Path("s/trials") / str(n)).result() for n in (0, 1)]
    assert sorted(result["config"]["training"]["lr"] for result in tried) == [0.05, 0.1]
    assert len({result["data"]["fingerprint"] for result in tried}) == 1


@pytest.mark.usefixtures("inline_engine")
def test_a_sweep_over_streams_and_budgets(lider: Any, write: Any) -> None:
    points = [
        {"name": "unequal", "benchmark": {"tasks": None, "base": 4}},
        {"name": "blurry", "benchmark": {"blurry": 0.2, "noise": 0.1, "imbalance": 0.5}},
        {"name": "free", "benchmark": {"task_free": True}},
        {"name": "budget", "training": {"budget": {"steps": 6}, "updates_per_batch": 2}},
        {"name": "patient", "training": {"epochs": 2, "patience": 1}},
        {"name": "domains", "benchmark": {"name": "rotated-digits", "tasks": 2}},
    ]
    write("sweep.yaml", {"base": TINY, "points": points, "seeds": [3]})
    code, out, err = lider("sweep", "sweep.yaml", "--out", "s", "--workers", "1", "--json")
    assert code == 0, err
    assert err.count(": class-incremental FAA ") == len(points) - 1
    assert err.count(": domain-incremental FAA ") == 1
    folders = sorted(Path("s/runs").iterdir())
    assert len(folders) == len(points)
    results = [RunFolder(folder).result() for folder in folders]
    assert len({json.dumps(result["data"]["fingerprint"]) for result in results}) >= 3
    settings = {row["group"]: row["setting"] for row in json.loads(out)["groups"]}
    assert settings == {p["name"]: "class-incremental" for p in points} | {
        "domains": "domain-incremental"
    }
    assert "domain-incremental" in Path("s/summary.csv").read_text()


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


@pytest.mark.usefixtures("inline_engine")
def test_a_search_over_domains_names_the_setting(lider: Any, write: Any) -> None:
    pytest.importorskip("optuna", reason="needs Optuna: pip install 'liderlab[search]'")
    domains = {"name": "rotated-digits", "tasks": 2, "train_per_class": 8, "test_per_class": 4}
    write("base.yaml", TINY | {"benchmark": domains})
    write("space.yaml", {"training.lr": [0.1]})
    command = "search --config base.yaml --space space.yaml --sampler grid --workers 1 --out s"
    code, out, err = lider(*command.split())
    assert code == 0, err
    assert "accuracy: domain-incremental, on training images held back" in out
    assert "% domain-incremental" in err
    code, out, err = lider(*command.split(), "--json")  # the study is complete
    assert json.loads(out)["setting"] == "domain-incremental"
