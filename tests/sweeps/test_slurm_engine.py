"""The Slurm engine on submitit's local executor: the same jobs, without a cluster."""

from __future__ import annotations

import os
import signal

import pytest

from liderlab.errors import UserError
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare
from liderlab.sweeps.scheduler import run_all
from liderlab.sweeps.slurm_engine import SlurmEngine

pytest.importorskip("submitit", reason="needs submitit: pip install 'liderlab[slurm]'")


@pytest.mark.slow
def test_jobs_succeed_fail_and_survive_a_kill(plan, tmp_path, wait_until) -> None:
    victim = plan("victim", training={"epochs": 60}, checkpoint_every=20)
    bad = plan("bad", training={"lr": 1e30})
    engine, killed = SlurmEngine(tmp_path / "jobs", 2, {"cluster": "local"}), []

    def kill_once(states: object) -> None:
        """Kill the job's process once its run has a checkpoint."""
        if not killed and RunFolder(victim.folder).checkpoints.files():
            lock = str(victim.folder / ".lock")
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    handles = [
                        os.readlink(f"/proc/{pid}/fd/{h}") for h in os.listdir(f"/proc/{pid}/fd")
                    ]
                except OSError:
                    continue
                if lock in handles and int(pid) != os.getpid():
                    os.kill(int(pid), signal.SIGKILL)
                    killed.append(int(pid))

    outcomes = run_all([victim, bad], engine=engine, watch=kill_once)
    assert killed
    assert [outcome.state for outcome in outcomes] == ["done", "failed"]
    assert "finite" in (outcomes[1].error or "")
    run(victim.config, tmp_path / "alone")
    assert compare(RunFolder(victim.folder), RunFolder(tmp_path / "alone")) == []


def test_a_machine_without_slurm_is_refused(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="no srun here"):
        SlurmEngine(tmp_path / "jobs")
    with pytest.raises(UserError, match="--slurm"):
        SlurmEngine(tmp_path / "jobs", options={"cluster": "local", "nodes": 2})
