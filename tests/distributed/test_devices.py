"""`lider run --devices 2`, for real: two processes, of which one is killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare

# Without BatchNorm and dropout, two ranks are one process up to rounding.
OPTIONS = ["--benchmark", "synthetic", "--method", "er-ace", "--backbone", "mlp", "--threads", "1"]
OPTIONS += ["--set", "regularizers.lider.estimator=batch", "--epochs", "15"]
OPTIONS += ["--lr", "0.01", "--checkpoint-every", "10"]
LIDER = [sys.executable, "-m", "liderlab"]
PATIENCE = 300  # seconds, on the busiest of machines


def call(
    *words: str, command: list[str] = LIDER, patience: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=patience)


def run(out: Path, *words: str, command: list[str] = LIDER) -> RunFolder:
    done = call("run", *OPTIONS, "--out", str(out), *words, command=command)
    assert done.returncode == 0, done.stderr
    return RunFolder(out)


def resume(folder: Path, *words: str) -> RunFolder:
    done = call("resume", str(folder), *words)
    assert done.returncode == 0, done.stderr
    return RunFolder(folder)


def helpers(process: int) -> list[int]:
    """The processes that it has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue  # it has just ended
        if parent == process:
            found.append(int(status.parent.name))
    return found


def begun(out: Path, devices: int) -> tuple[subprocess.Popen[str], list[int]]:
    """A running run that has a checkpoint, and the processes of its other ranks."""
    words = ["run", *OPTIONS, "--out", str(out), "--devices", str(devices)]
    process = subprocess.Popen([*LIDER, *words], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    while not RunFolder(out).checkpoints.files():
        assert process.poll() is None, "it has ended before it has saved anything"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process, helpers(process.pid)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def gone(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"  # a zombie


def weights(folder: RunFolder) -> dict[str, Any]:
    state = folder.state()
    return {"network": state["network"], "lider": state["regularizers"][0]}


def assert_close(one: RunFolder, other: RunFolder) -> None:
    """The same run up to rounding: weights, targets, and the very same samples in memory."""
    torch.testing.assert_close(weights(one), weights(other), rtol=1e-3, atol=1e-4)
    memories = [folder.state()["memory"]["data"] for folder in (one, other)]
    assert torch.equal(memories[0]["x"], memories[1]["x"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("devices")


@pytest.fixture(scope="module")
def whole(place: Path) -> RunFolder:
    """An undisturbed run on two devices."""
    return run(place / "whole", "--devices", "2")


@pytest.fixture(scope="module")
def killed(place: Path) -> tuple[Path, int, str, list[int]]:
    """A run of which one of two ranks was killed: folder, exit code, messages, killed processes."""
    for attempt in range(5):  # a fast run may end before the kill
        out = place / f"killed-{attempt}"
        process, helping = begun(out, 2)
        for helper in helping:
            os.kill(helper, signal.SIGKILL)
        code, said = ended(process)
        if not RunFolder(out).finished:
            return out, code, said, helping
    pytest.fail("every run was done before a rank could be killed")


def test_the_folder_is_like_any_other(whole: RunFolder) -> None:
    result = whole.result()
    assert result["parallel"] == {"devices": 2, "strategy": "ddp", "backend": "gloo"}
    assert result["config"]["devices"] == 2
    assert len(whole.checkpoints.files()) == 2
    steps = [line["step"] for line in whole.metrics()]
    assert steps == sorted(steps)  # one process has written them
    assert (whole.path / "accuracy.png").is_file()
    assert not (whole.path / "progress.json").exists()


def test_a_killed_rank_ends_the_run_with_a_sentence(
    killed: tuple[Path, int, str, list[int]],
) -> None:
    out, code, said, helping = killed
    assert len(helping) == 1
    assert code == 1
    *_, sentence = said.strip().splitlines()
    assert sentence == (
        f"lider: rank 1 has ended (SIGKILL); the last checkpoint is intact: lider resume {out}"
    )
    assert "Traceback" not in said
    assert all(gone(helper) for helper in helping)


def test_a_killed_run_resumes_to_the_bit(
    killed: tuple[Path, int, str, list[int]], whole: RunFolder, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(killed[0], tmp_path / "copy"))
    assert compare(resume(copy), whole) == []


@pytest.mark.slow
def test_a_killed_run_resumes_on_one_device(
    killed: tuple[Path, int, str, list[int]], whole: RunFolder, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(killed[0], tmp_path / "copy"))
    resumed = resume(copy, "--devices", "1")
    assert resumed.config().devices == 1
    assert "parallel" not in resumed.result()
    assert_close(resumed, whole)


@pytest.mark.slow
def test_a_run_on_one_device_resumes_on_two(whole: RunFolder, tmp_path: Path) -> None:
    alone = run(tmp_path / "alone")
    assert_close(alone, whole)
    process, helping = begun(tmp_path / "stopped", 1)
    assert helping == []
    process.terminate()
    code, said = ended(process)
    assert code == 143, said
    assert_close(resume(tmp_path / "stopped", "--devices", "2"), alone)


@pytest.mark.slow
def test_a_killed_rank_0_ends_all_ranks(tmp_path: Path, whole: RunFolder) -> None:
    process, helping = begun(tmp_path / "x", 2)
    process.kill()
    code, said = ended(process)  # the helper holds standard error, too
    assert code == -signal.SIGKILL
    assert "lider: rank 0 has ended, and rank 1 with it" in said
    deadline = time.monotonic() + PATIENCE
    while not all(gone(helper) for helper in helping):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert compare(resume(tmp_path / "x"), whole) == []


@pytest.mark.slow
def test_a_signal_for_any_rank_saves_and_stops(tmp_path: Path, whole: RunFolder) -> None:
    process, helping = begun(tmp_path / "x", 2)
    os.kill(helping[0], signal.SIGTERM)
    code, said = ended(process)
    assert code == 143
    assert said.strip().splitlines()[-1].startswith("lider: stopped: everything is saved")
    assert compare(resume(tmp_path / "x"), whole) == []


@pytest.mark.slow
def test_under_torchrun(tmp_path: Path, whole: RunFolder) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--nproc-per-node", "2", "-m", "liderlab"]
    assert compare(run(tmp_path / "x", command=torchrun), whole) == []


@pytest.mark.slow
def test_under_slurm(tmp_path: Path, whole: RunFolder) -> None:
    """As srun would start them; the port is the system's choice of a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {
        "SLURM_JOB_ID": "4711",
        "SLURM_NTASKS": "2",
        "SLURM_NTASKS_PER_NODE": "2",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    words = [*LIDER, "run", *OPTIONS, "--out", str(tmp_path / "x"), "--devices", "2"]
    tasks = [
        subprocess.Popen(
            words,
            env=os.environ | told | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    said = [task.communicate(timeout=PATIENCE)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert said[1] == ""  # rank 0 does the talking
    assert compare(RunFolder(tmp_path / "x"), whole) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        ["--strategy", "ddp-syncbn"],
        ["--precision", "bfloat16"],
        ["--precision", "float16"],
        ["--set", "compile=aot_eager"],
        ["--set", "compile=aot_eager", "--strategy", "ddp-syncbn"],
        ["--memory-storage", "disk", "--method", "gmed"],
    ],
    ids=lambda words: " ".join(words),
)
def test_two_ranks_survive_kills(how: list[str]) -> None:
    """Bit for bit, with BatchNorm and everything."""
    words = ["verify-resume", "--kills", "2", "--benchmark", "synthetic", "--width", "8"]
    words += ["--threads", "1", "--epochs", "4", "--lider", "--devices", "2", *how]
    done = call(*words, patience=10 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing differs" in done.stdout


def test_a_sweep_refuses_two_devices(lider: Callable[..., tuple[int, str, str]]) -> None:
    Path("sweep.yaml").write_text("base: {benchmark: synthetic, devices: 2}")
    code, _, said = lider("sweep", "sweep.yaml", "--out", "out")
    assert code == 2
    assert "put every run on one device" in said
    assert said.count("\n") == 1
    assert not Path("out").exists()


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four classes in old/, two more in new/."""
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    names = ("old/ant", "old/bee", "old/cow", "old/dog", "new/eel", "new/fox")
    for number, name in enumerate(names):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for image in range(20):
            colour = (40 * number, 250 - 40 * number, 10 * image)
            Image.new("RGB", (8, 8), colour).save(folder / f"{image}.png")
    return tmp_path


@pytest.mark.slow
def test_an_extension_on_two_devices(photos: Path) -> None:
    """Bit for bit when repeated, and like one device up to rounding; the first run is untouched."""
    options = ["--benchmark", f"folder:{photos}/old", "--tasks", "2", "--set", "benchmark.size=8"]
    extension = ["--benchmark", f"folder:{photos}/new", "--tasks", "1"]
    for out, devices in (("one", "1"), ("two", "2")):
        run(photos / out, *options, "--buffer", "16", "--devices", devices)
    before = (photos / "two/result.json").read_bytes()
    for first, out in (("one", "one-more"), ("two", "two-more"), ("two", "again")):
        done = call("extend", str(photos / first), *extension, "--out", str(photos / out))
        assert done.returncode == 0, done.stderr
    one, two, again = (RunFolder(photos / out) for out in ("one-more", "two-more", "again"))
    assert two.result()["parallel"]["devices"] == 2
    assert two.result()["extends"]["tasks"] == 2
    assert len(two.result()["classes"]) == 6
    assert_close(one, two)
    assert not compare(two, again)
    assert (photos / "two/result.json").read_bytes() == before
