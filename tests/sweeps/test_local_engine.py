"""Local processes: the same results to the bit, also after kills."""

from __future__ import annotations

import csv
import json
import os
import signal
from pathlib import Path

import pytest

from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare
from liderlab.sweeps.failure_file import FILE
from liderlab.sweeps.local_engine import LocalEngine
from liderlab.sweeps.scheduler import Scheduler, run_all
from liderlab.sweeps.summary import group_rows, run_rows
from liderlab.sweeps.sweep_file import read_sweep

LONG = {"training": {"epochs": 60}, "checkpoint_every": 20}


def test_results_equal_those_of_single_runs_and_a_failure_does_not_spread(plan) -> None:
    good = [plan(f"good-{seed}", seed=seed) for seed in (0, 1)]
    bad = plan("bad", training={"lr": 1e30})
    outcomes = run_all([good[0], bad, good[1]], workers=2)
    assert [outcome.state for outcome in outcomes] == ["done", "failed", "done"]
    assert "finite" in (outcomes[1].error or "")
    assert "Traceback" in (bad.folder / FILE).read_text()
    for one in good:
        alone = one.folder.with_name(f"{one.name}-alone")
        run(one.config, alone)
        assert compare(RunFolder(one.folder), RunFolder(alone)) == []
        assert not (one.folder / "worker.log").exists()
        assert (one.folder / "accuracy.png").is_file()  # as after lider run


def test_a_killed_worker_is_replaced_and_the_result_is_the_same(plan, wait_until) -> None:
    engine, victim = LocalEngine(1), plan("victim", **LONG)
    scheduler, folder = Scheduler(engine), RunFolder(victim.folder)
    scheduler.add(victim)

    def under_way() -> bool:
        assert scheduler.tick() == []
        return bool(folder.checkpoints.files())

    wait_until(under_way, "the first checkpoint")
    (worker,) = engine._workers.values()
    os.kill(worker.process.pid, signal.SIGKILL)
    outcomes = wait_until(scheduler.tick, "the end")
    engine.close()
    assert [outcome.state for outcome in outcomes] == ["done"]
    assert scheduler._deaths["victim"] == 1
    run(victim.config, victim.folder.with_name("alone"))
    assert compare(folder, RunFolder(victim.folder.with_name("alone"))) == []


def test_one_run_always_starts_and_a_second_only_with_memory_for_it(plan, monkeypatch) -> None:
    monkeypatch.setattr("liderlab.sweeps.local_engine.available_memory", lambda: 0.0)
    engine = LocalEngine(2)
    a, b = plan("a"), plan("b")
    try:
        assert engine.start([a, b]) == [a]
        assert engine.start([b]) == []
        monkeypatch.setattr("liderlab.sweeps.local_engine.available_memory", lambda: 1e12)
        assert engine.start([b]) == [b]
    finally:
        engine.close()


def test_each_worker_has_its_own_gpu(plan, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    engine = LocalEngine(3)
    assert [engine._gpu(plan("a", device="cuda"), slot) for slot in range(3)] == ["4", "7", "4"]
    assert engine._gpu(plan("a", device="cpu"), 0) is None
    assert engine._gpu(plan("a", device="cuda:1"), 0) is None


@pytest.mark.slow
def test_ctrl_c_saves_and_the_same_command_resumes(
    start, lider, write, wait_until, tmp_path
) -> None:
    base = {"benchmark": "synthetic", "backbone": {"width": 8}, "method": "er", **LONG}
    file = write("s.yaml", {"base": base, "seeds": 2})
    command = ["sweep", file, "--out", "s", "--workers", "2"]
    sweep = start(*command)
    metrics = tmp_path / "s/runs/seed=0/metrics.jsonl"
    wait_until(lambda: metrics.exists() or sweep.poll() is not None, "a run")
    sweep.send_signal(signal.SIGINT)
    output, _ = sweep.communicate()
    assert sweep.returncode == 130, output
    expected = "stopped: everything is saved; go on with: lider sweep s.yaml --out s --workers 2"
    assert output.splitlines()[-1] == f"lider: {expected}"
    assert not list(tmp_path.rglob(FILE))
    again = start(*command)
    output, _ = again.communicate()
    assert again.returncode == 0, output
    assert "2 of 2 runs done" in output
    assert max(map(len, output.splitlines())) <= 80
    code, out, _ = lider(*command, "--json")  # all is done
    assert code == 0
    assert [row["state"] for row in json.loads(out)["runs"]] == ["done", "done"]
    points = read_sweep({"base": base, "seeds": 2}, tmp_path / "s", 1)
    results = [RunFolder(point.plan.folder).result() for point in points]
    with (tmp_path / "s/summary.csv").open() as text:
        (row,) = csv.DictReader(text)
    faa = [result["class_incremental"]["faa"] for result in results]
    assert abs(float(row["faa_mean"]) - sum(faa) / 2) < 1e-9
    assert abs(float(row["faa_std"]) - abs(faa[0] - faa[1]) / 2**0.5) < 1e-9
    run(points[0].plan.config, tmp_path / "alone")
    assert compare(RunFolder(points[0].plan.folder), RunFolder(tmp_path / "alone")) == []


def test_rows_of_a_sweep_with_a_failed_run(tmp_path: Path) -> None:
    base = {"benchmark": "synthetic", "training": {"epochs": 1}}
    points = read_sweep({"base": base, "grid": {"training.lr": [0.1, 1e30]}}, tmp_path, 1)
    rows = run_rows(points, run_all([point.plan for point in points], workers=2))
    assert [row["state"] for row in rows] == ["done", "failed"]
    assert rows[1]["faa"] is None
    assert rows[1]["error"]
    groups = group_rows(points, rows)
    assert [(group["runs"], group["done"]) for group in groups] == [(1, 1), (1, 0)]
    assert groups[0]["faa_mean"] == rows[0]["faa"]
    assert groups[1]["faa_mean"] is None


@pytest.mark.slow
def test_workers_of_a_killed_sweep_stop_and_two_sweeps_may_share_its_folder(
    start, write, wait_until, tmp_path
) -> None:
    base = {"benchmark": "synthetic", "backbone": {"width": 8}, "method": "er", **LONG}
    file = write("s.yaml", {"base": base, "seeds": 2})
    command = ["sweep", file, "--out", "s", "--workers", "1"]
    folders = [RunFolder(tmp_path / f"s/runs/seed={seed}") for seed in (0, 1)]
    killed = start(*command)
    wait_until(folders[0].checkpoints.files, "a checkpoint")
    killed.kill()
    killed.wait()
    wait_until(lambda: not folders[0].locked, "the orphan to stop")
    assert not folders[0].finished
    for sweep in [start(*command), start(*command)]:
        output, _ = sweep.communicate()
        assert sweep.returncode == 0, output
        assert "2 of 2 runs done" in output
    for point, folder in zip(
        read_sweep({"base": base, "seeds": 2}, tmp_path / "s", 1), folders, strict=True
    ):
        alone = tmp_path / f"alone-{point.plan.config.seed}"
        run(point.plan.config, alone)
        assert compare(folder, RunFolder(alone)) == []
