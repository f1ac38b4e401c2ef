"""Two real processes against one: the same rows, the same draws, the same run."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from liderlab.distributed.team import Team

WORKER = Path(__file__).parent / "ranks.py"
spec = importlib.util.spec_from_file_location("liderlab_tests_ranks", WORKER)
assert spec is not None
assert spec.loader is not None
ranks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ranks)

OWN = [name for name in ranks.cases() if name.startswith(("own", "dropout"))]
EQUAL = [name for name in ranks.cases() if name not in OWN]
# Each kind of sharing once: rows, draws, BatchNorm, idle ranks, budgets. `make test-all` runs all.
QUICK = (
    *("er-ace alone", "er-ace lider", "der++ lider", "x-der-rpc lider", "icarl alone"),
    *("a-gem alone", "gdumb lider", "gmed alone", "lwf alone", "ncm alone", "curvature"),
    *("worst weights", "idle graph", "moved", "projected", "worst point", "flat"),
    *("a head per task", "fresh", "past", "steps", "patience", "on disk", "uneven"),
    *("clipped by norm", "idle", "task-free", "shared BatchNorm er", "shared BatchNorm idle"),
    *("transformer lider", "own BatchNorm", "dropout"),
)
assert set(QUICK) <= set(ranks.cases())


def marked(names: Iterable[str]) -> list[Any]:
    return [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in names]


PATIENCE = 500  # seconds, on the busiest of machines


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the outcome on two ranks of every case that a chosen test needs."""
    folder = tmp_path_factory.mktemp("ranks")
    chosen = [item for item in request.session.items if item.path == request.path]
    names = {item.callspec.params["case"] for item in chosen if hasattr(item, "callspec")}
    processes = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(rank), str(folder), *sorted(names)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(said)
    return folder


@pytest.fixture(scope="module")
def both(folder: Path) -> list[dict[str, Any]]:
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("case", marked(ranks.cases()))
def test_ranks_agree_to_the_bit(case: str, both: list[dict[str, Any]], differences: Any) -> None:
    """Weights, targets, momentum, memory, generators, metrics and the value of every loss."""
    assert differences(both[0][case], both[1][case]) == []


@pytest.mark.parametrize("case", marked(EQUAL))
def test_two_ranks_are_one_process(case: str, both: list[dict[str, Any]]) -> None:
    alone = ranks.outcome(ranks.make(Team(), ranks.cases()[case]))
    shared = both[0][case]
    assert len(alone["terms"]) == len(shared["terms"]) > 3
    close = {"rtol": 1e-6, "atol": 1e-8}  # stored logits and pixels are float32
    for key in ("terms", "readings", "network", "regularizers", "memory"):
        torch.testing.assert_close(shared[key], alone[key], **close, equal_nan=True, msg=None)
    torch.testing.assert_close(shared["method"], alone["method"], **close)
    assert torch.equal(shared["memory"]["y"], alone["memory"]["y"])
    for name, state in alone["generators"].items():
        assert torch.equal(shared["generators"][name], state), name
    accuracy = [run["evaluation"]["class_incremental"] for run in (alone, shared)]
    torch.testing.assert_close(*accuracy, equal_nan=True)
    for key in ("anytime", "steps", "passes"):
        assert shared.get(key) == alone.get(key)


def test_ranks_that_differ_stop(folder: Path) -> None:
    """All ranks raise the same sentence: other memory, other weights, other decision."""
    one, other = (json.loads((folder / f"{rank}.json").read_text()) for rank in range(2))
    assert one == other
    assert one["memory"] == "the memory is not the same on all ranks"
    assert one["network"] == "the network is not the same on all ranks"
    assert "what a step does is not the same" in one["decision"]
    assert "step.gather" in one["decision"]
