"""A Ray cluster of two nodes on this machine, one of which is killed."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare

pytest.importorskip("ray", reason="needs Ray: pip install 'liderlab[ray]'")
QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}


def descendants(pid: int) -> list[int]:
    """The process's children, their children, and so on."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kill the process and its descendants, as if the machine lost power."""
    for pid in [*descendants(process.pid), process.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


class Cluster:
    """Nodes of one CPU each, closed to others by a token."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))  # short, since paths of sockets must be
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.environment |= {"RAY_USAGE_STATS_ENABLED": "0"}
        self.nodes: list[subprocess.Popen[str]] = []

    def add(self) -> None:
        arguments = ["--num-cpus=1", "--object-store-memory=80000000", "--block"]
        if self.nodes:
            arguments += [f"--address={self.address}"]
        else:
            host, port = self.address.split(":")
            arguments += ["--head", f"--node-ip-address={host}", f"--port={port}"]
            arguments += ["--include-dashboard=false", f"--temp-dir={self.folder}"]
            arguments += [f"--system-config={json.dumps(QUICK_TO_NOTICE)}"]
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments]
            environment = {**os.environ, **self.environment}
            self.nodes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True)
            )

    def up(self) -> int:
        """How many nodes report that they have started."""
        return self._log.read_text().count("Ray runtime started.")


@pytest.fixture
def cluster(tmp_path: Path, wait_until: Callable[..., Any]) -> Iterator[Cluster]:
    (tmp_path / "ray.log").touch()
    cluster = Cluster(tmp_path / "ray.log")
    try:
        for number in (1, 2):
            cluster.add()
            wait_until(lambda number=number: cluster.up() == number, f"node {number}")
        yield cluster
    finally:
        for node in reversed(cluster.nodes):
            if node.poll() is None:
                kill_all(node)
        shutil.rmtree(cluster.folder, ignore_errors=True)


def running_below(node: subprocess.Popen[str], folders: list[RunFolder]) -> RunFolder | None:
    """An unfinished run with a checkpoint that a process of this node executes."""
    pids = descendants(node.pid)
    for folder in folders:
        lock = folder.path / ".lock"
        if not lock.exists() or folder.finished or not folder.checkpoints.files():
            continue
        for pid in pids:
            try:
                handles = [os.readlink(handle) for handle in Path(f"/proc/{pid}/fd").iterdir()]
            except OSError:
                continue
            if str(lock) in handles:
                return folder
    return None


@pytest.mark.slow
def test_runs_of_a_killed_node_resume_on_another(
    cluster: Cluster, plan, start, write, wait_until, tmp_path: Path
) -> None:
    long = {"epochs": 100}  # long enough to be killed in the middle
    base = {"benchmark": "synthetic", "backbone": {"width": 8}, "method": "er"}
    base |= {"training": long, "checkpoint_every": 20}
    file = write("sweep.yaml", {"base": base, "seeds": 2})
    sweep = start(
        *f"sweep {file} --out s --engine ray --address {cluster.address}".split(),
        **cluster.environment,
    )
    folders = [RunFolder(tmp_path / "s/runs" / f"seed={seed}") for seed in range(2)]

    def caught() -> RunFolder | None:
        assert sweep.poll() is None, sweep.communicate()[0]
        return running_below(cluster.nodes[1], folders)

    victim = wait_until(caught, "a run on the second node")
    kill_all(cluster.nodes[1])
    assert not victim.finished
    steps = int(victim.checkpoints.files()[0].stem.removeprefix("step-"))
    assert steps > 0
    output, _ = sweep.communicate(timeout=240)
    assert sweep.returncode == 0, output
    assert "2 of 2 runs done" in output
    for seed, folder in enumerate(folders):
        # one line per logged step, none missing, none twice: as if nothing had happened
        alone = plan(f"alone-{seed}", **base, seed=seed)
        if folder is victim:
            run(alone.config, alone.folder)
            assert compare(folder, RunFolder(alone.folder)) == []
        logged = [line["step"] for line in folder.metrics() if line["kind"] == "step"]
        assert logged == sorted(set(logged))
