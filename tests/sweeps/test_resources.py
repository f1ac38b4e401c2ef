"""Resources of the machine, and the estimate of what a run needs."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.sweeps import memory_estimate, resources
from liderlab.sweeps.engine import default_workers, threads_each


def test_the_need_grows_with_network_memory_and_batch(plan) -> None:
    need = memory_estimate.memory_need(plan("a").config)
    assert need > memory_estimate.PROCESS
    for more in (
        {"backbone": {"width": 64}},
        {"memory": {"size": 10_000}},
        {"training": {"batch_size": 256}},
    ):
        assert memory_estimate.memory_need(plan("b", **more).config) > need
    assert memory_estimate.memory_need(plan("c", seed=5, training={"lr": 0.7}).config) == need


def test_a_run_that_cannot_be_built_is_refused(plan) -> None:
    with pytest.raises(UserError, match="cuda:99"):
        memory_estimate.memory_need(plan("a", device="cuda:99").config)
    memory_estimate.memory_need(plan("a", device="cuda:99").config, device="cpu")


def test_a_containers_limit_counts(tmp_path: Path) -> None:
    assert resources._container_memory(tmp_path / "nowhere") == math.inf
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 150\n")
    (tmp_path / "memory.max").write_text("1000\n")
    assert resources._container_memory(tmp_path) == 450
    (tmp_path / "memory.max").write_text("max\n")
    assert resources._container_memory(tmp_path) == math.inf


def test_this_machine_and_process() -> None:
    assert resources.available_memory() > 0
    assert resources.resident_memory(os.getpid()) > 2**20
    assert resources.resident_memory(None) == 0


def test_cores_are_divided_among_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liderlab.sweeps.engine.cores", lambda: 8)
    monkeypatch.setattr("liderlab.sweeps.engine.gpus", lambda: ["0", "1"])
    assert [threads_each("local", workers) for workers in (1, 3, 16)] == [8, 2, 1]
    assert threads_each("ray", 1) == 1
    assert (default_workers("cpu"), default_workers("cuda")) == (8, 2)
