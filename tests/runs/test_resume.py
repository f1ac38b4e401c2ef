"""Runs that stop and go on."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.errors import RunFailed, Stopped, UserError
from liderlab.memory import Memory
from liderlab.report.terminal.result_tables import remarks
from liderlab.runs import execute
from liderlab.runs.build import Run
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare, unequal
from liderlab.training.events import Event, StepDone

SMALL = {
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "method": "der++",
    "regularizers": {"lider": {}},
    "log_every": 4,
    "checkpoint_every": 3,
}


class Crash(BaseException):
    """Stands for a killed process."""


def config(**changes: Any) -> RunConfig:
    return make_config(SMALL, changes)


def after(steps: int, action: Any) -> Any:
    """A listener that does something after so many steps."""

    def listener(work: Run, event: Event) -> None:
        if isinstance(event, StepDone) and work.loop.steps == steps:
            action()

    return listener


def crash() -> None:
    raise Crash


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("runs") / "whole"
    run(config(), path)
    return RunFolder(path)


@pytest.mark.parametrize("steps", [1, 5, 6, 13, 17])
def test_a_crash_changes_nothing(whole: RunFolder, tmp_path: Path, steps: int) -> None:
    for number in (steps, steps + 1):
        with pytest.raises(Crash):
            run(config(), tmp_path, existing="resume", listener=after(number, crash))
    run(config(), tmp_path, existing="resume")
    assert compare(whole, RunFolder(tmp_path)) == []


def test_cpu_seconds_sum_over_all_processes_or_are_unknown(tmp_path: Path) -> None:
    """Checkpoints of older versions do not hold the CPU time so far."""
    folder = RunFolder(tmp_path)
    for steps in (4, 8):
        with pytest.raises(Crash):
            run(config(), tmp_path, existing="resume", listener=after(steps, crash))
    state = folder.state()
    folder.checkpoints.write(state | {"seconds_cpu": 1000.0})
    counted = run(config(), tmp_path, existing="resume")["seconds_cpu"]
    assert counted > 1000.0
    (tmp_path / "result.json").unlink()
    state = folder.state()
    del state["seconds_cpu"]
    folder.checkpoints.write(state)
    assert run(config(), tmp_path, existing="resume")["seconds_cpu"] is None


def test_a_damaged_checkpoint_costs_only_time(
    whole: RunFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Crash):
        run(config(), tmp_path, listener=after(13, crash))
    folder = RunFolder(tmp_path)
    newest = folder.checkpoints.files()[0]
    newest.write_bytes(newest.read_bytes()[:500])
    run(config(), tmp_path, existing="resume")
    assert "cannot be used" in caplog.text
    assert compare(whole, folder) == []


def test_resuming_a_finished_run_changes_nothing(whole: RunFolder) -> None:
    before = {file: file.stat().st_mtime_ns for file in whole.path.rglob("*") if file.is_file()}
    assert run(config(), whole.path, existing="resume") == whole.result()
    assert before == {file: file.stat().st_mtime_ns for file in before}


def test_another_configuration_is_refused_with_the_difference(whole: RunFolder) -> None:
    with pytest.raises(UserError, match=r"training.lr was 0.1, now 0.2"):
        run(config(training={"lr": 0.2}), whole.path, existing="resume")
    with pytest.raises(UserError, match=r"method.alpha was 0.1, now 0.3"):
        run(config(method={"alpha": 0.3}), whole.path, existing="resume")
    run(config(checkpoint_every="1h"), whole.path, existing="resume")  # makes no difference


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [("seed", "\nseed: 0\n", "\nseed: 1\n"), ("training.lr", " lr: 0.1\n", " lr: 0.2\n")],
    ids=["seed", "lr"],
)
@pytest.mark.parametrize("steps", [13, None], ids=["interrupted", "finished"])
def test_an_edited_configuration_is_refused(
    whole: RunFolder, tmp_path: Path, field: str, old: str, new: str, steps: int | None
) -> None:
    """The checkpoint and the result hold the configuration that the run was begun with."""
    folder = RunFolder(tmp_path / "x")
    if steps is None:
        shutil.copytree(whole.path, folder.path)
    else:
        with pytest.raises(Crash):
            run(config(), folder.path, listener=after(steps, crash))
    file = folder.path / "config.yaml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    with pytest.raises(UserError, match=rf"{field} was .*, now .*undo the change"):
        run(folder.config(), folder.path, existing="resume")
    file.write_text(text.replace("checkpoint_every: '3'", "checkpoint_every: '4'"))
    run(folder.config(), folder.path, existing="resume")  # makes no difference
    assert compare(whole, folder) == []


def test_a_change_that_is_allowed_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        run(config(), tmp_path, listener=after(13, crash))
    result = run(config(on_nonfinite="skip", checkpoint_every="1h"), tmp_path, existing="resume")
    assert result["config_before"] == [{"until_step": 12, "on_nonfinite": "stop"}]


def test_a_run_stops_when_its_folder_is_deleted(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "x")
    with pytest.raises(RunFailed, match="was deleted while the run was going on") as failure:
        run(config(), folder.path, listener=after(4, lambda: shutil.rmtree(folder.path)))
    assert "lider resume" not in str(failure.value)
    assert not folder.path.exists()


def test_a_run_never_writes_to_a_folder_that_was_made_anew(
    whole: RunFolder, tmp_path: Path
) -> None:
    """Someone deletes the folder of a paused run, and starts another run there."""
    folder = RunFolder(tmp_path / "x")

    def replace() -> None:
        shutil.rmtree(folder.path)
        run(config(), folder.path)

    with pytest.raises(RunFailed, match="was deleted"):
        run(config(seed=1, memory={"storage": "disk"}), folder.path, listener=after(4, replace))
    assert compare(whole, folder) == []
    assert not folder.memory.exists()


def test_a_memory_on_disk_never_writes_to_a_folder_that_was_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is replaced before the paused run has stored its first row."""
    folder, offer = RunFolder(tmp_path / "x"), Memory.offer
    disk = {"memory": {"storage": "disk"}}

    def replace(*arguments: Any, **rows: Any) -> Any:
        monkeypatch.undo()
        shutil.rmtree(folder.path)
        run(config(**disk), folder.path)
        stored.append((folder.memory / "x.rows").read_bytes())
        return offer(*arguments, **rows)

    stored: list[bytes] = []
    monkeypatch.setattr(Memory, "offer", replace)
    with pytest.raises(RunFailed, match="was deleted"):
        run(config(seed=1, **disk), folder.path)
    assert stored == [(folder.memory / "x.rows").read_bytes()]


@pytest.mark.parametrize("existing", ["refuse", "resume"])
def test_a_run_begun_in_the_meantime_is_not_replaced(
    whole: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: Any
) -> None:
    def build(*arguments: Any) -> Run:
        monkeypatch.undo()
        run(config(), tmp_path / "x")
        return execute.build(*arguments)

    monkeypatch.setattr(execute, "build", build)
    with pytest.raises(UserError, match="has just begun a run"):
        run(config(seed=1), tmp_path / "x", existing=existing)
    assert compare(whole, RunFolder(tmp_path / "x")) == []


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """As in a terminal, also where the tests themselves run in the background."""
    usual = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    }
    yield
    for number, handler in usual.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_step_and_saves(
    whole: RunFolder, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    usual = signal.getsignal(number)
    with pytest.raises(Stopped, match="lider resume") as stopped:
        run(config(), tmp_path, listener=after(8, lambda: os.kill(os.getpid(), number)))
    assert stopped.value.exit_code == code
    assert signal.getsignal(number) is usual
    assert RunFolder(tmp_path).state()["steps"] in (8, 9)
    run(config(), tmp_path, existing="resume")
    assert compare(whole, RunFolder(tmp_path)) == []


@pytest.mark.usefixtures("usual_signals")
def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        run(config(), tmp_path, listener=after(8, twice))
    assert RunFolder(tmp_path).state()["steps"] >= 6


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run(config(), tmp_path, listener=after(8, lambda: os.kill(os.getpid(), signal.SIGINT)))
    finally:
        signal.signal(signal.SIGINT, usual)
    assert RunFolder(tmp_path).finished


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    second: list[str] = []

    def intrude() -> None:
        with pytest.raises(UserError) as refused:
            run(config(), tmp_path, existing="replace")
        second.append(str(refused.value))

    run(config(), tmp_path, listener=after(4, intrude))
    assert second == [f"another process is running {tmp_path}: wait for it"]
    assert not RunFolder(tmp_path).locked


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom liderlab.runs.folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).lock():\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=-1)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert RunFolder(tmp_path).locked
    holder.kill()
    holder.communicate()
    with RunFolder(tmp_path).lock():
        pass


def test_asking_about_the_lock_does_not_disturb_a_writer(tmp_path: Path) -> None:
    folder, stop = RunFolder(tmp_path), threading.Event()

    def look() -> None:
        while not stop.wait(0.001):
            _ = folder.locked

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(200):
            with folder.lock():
                pass
    finally:
        stop.set()
        watcher.join()


def test_temporary_files_of_a_killed_process_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    litter = [tmp_path / ".result.json.abc", tmp_path / "checkpoints/.step-000000000003.pt.xyz"]
    mine = tmp_path / ".mine"
    for file in (*litter, mine):
        file.touch()
    with RunFolder(tmp_path).lock():
        assert not any(file.exists() for file in litter)
        assert mine.exists()


def test_a_full_disk_leaves_the_checkpoint_before_intact(whole: RunFolder, tmp_path: Path) -> None:
    """A file-size limit stands for the full disk: the write fails in the middle."""
    size = whole.checkpoints.files()[0].stat().st_size
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, usual[1]))

    try:
        with pytest.raises(RunFailed, match="cannot write") as failed:
            run(config(), tmp_path, listener=after(8, fill))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        signal.signal(signal.SIGXFSZ, handler)
    assert "lider resume" in str(failed.value)
    assert RunFolder(tmp_path).state()["steps"] == 6
    assert [f.name for f in tmp_path.rglob(".*") if f.name != ".lock"] == []
    run(config(), tmp_path, existing="resume")
    assert compare(whole, RunFolder(tmp_path)) == []


def test_a_full_disk_before_the_first_checkpoint_promises_nothing(tmp_path: Path) -> None:
    def full(folder: RunFolder, length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "open_metrics", full)
        with pytest.raises(RunFailed) as failed:
            run(config(), tmp_path)
    assert str(failed.value) == (
        "cannot write: No space left on device; nothing was saved yet: "
        f"lider resume {tmp_path} starts from the beginning"
    )


@pytest.mark.parametrize("mine", [False, True])
def test_a_run_that_is_refused_late_deletes_its_files(tmp_path: Path, mine: bool) -> None:
    out = tmp_path / "x"
    if mine:
        out.mkdir()
        (out / "mine.txt").touch()

    def refuse() -> None:
        raise UserError("on second thoughts")

    with pytest.raises(UserError, match="second thoughts"):
        run(config(), out, existing="replace", listener=after(2, refuse))
    assert [file.name for file in tmp_path.rglob("*")] == (["x", "mine.txt"] if mine else [])
    with pytest.raises(UserError, match="second thoughts"):
        run(config(), out, existing="replace", listener=after(4, refuse))
    assert RunFolder(out).state()["steps"] == 3  # what was saved stays


def test_a_full_disk_at_the_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, write: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("liderlab.runs.folder.write_atomically", full)
    with pytest.raises(UserError, match="No space left"):
        run(config(), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_deleted_while_waiting_is_refused(tmp_path: Path) -> None:
    folder, said = RunFolder(tmp_path / "x"), list[str]()

    def wait() -> None:
        with pytest.raises(UserError) as refused, folder.lock():
            pass
        said.append(str(refused.value))

    with folder.lock():
        waiting = threading.Thread(target=wait)
        inode = (tmp_path / "x/.lock").stat().st_ino
        waiting.start()
        deadline = time.monotonic() + 30
        while sum(_opened(inode)) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        folder.remove()
    waiting.join()
    assert said == [f"another process has just removed {tmp_path / 'x'}: try again"]


def _opened(inode: int) -> Iterator[bool]:
    """Whether each open descriptor of this process is of that file."""
    for descriptor in range(3, 256):
        try:
            yield os.fstat(descriptor).st_ino == inode
        except OSError:
            yield False


def test_running_out_of_memory_in_training_is_explained(tmp_path: Path) -> None:
    def ask() -> None:
        torch.zeros(10**15)

    with pytest.raises(RunFailed, match=r"4,000,000.0 GB were asked for; the last checkpoint"):
        run(config(), tmp_path, listener=after(8, ask))


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        run(config(), tmp_path / "file" / "x")


def test_a_nonfinite_loss_stops_the_run(tmp_path: Path) -> None:
    changes = {"training": {"lr": 1e30}, "regularizers": {}}
    tree = {key: value for key, value in SMALL.items() if key != "regularizers"}
    with pytest.raises(RunFailed, match=r"not finite in task 1, epoch 1, step \d+") as failed:
        run(make_config(tree, changes), tmp_path)
    assert f"lider resume {tmp_path} --on-nonfinite skip" in str(failed.value)
    assert "checkpoint" not in str(failed.value)  # there is none
    assert "loss term '" in str(failed.value) or "gradient" in str(failed.value)


def test_a_run_stopped_by_a_nonfinite_loss_can_resume_with_skip(
    tmp_path: Path,
) -> None:
    changes = {"training": {"lr": 1e30}, "regularizers": {}}
    with pytest.raises(RunFailed):
        run(make_config(SMALL, changes), tmp_path)
    result = run(make_config(SMALL, changes, {"on_nonfinite": "skip"}), tmp_path, existing="resume")
    folder = RunFolder(tmp_path)
    assert b"NaN" not in (tmp_path / "metrics.jsonl").read_bytes()  # not valid JSON
    terms = [line["terms"].values() for line in folder.metrics() if line["kind"] == "step"]
    assert any(None in values for values in terms)
    assert folder.config().on_nonfinite == result["config"]["on_nonfinite"] == "skip"
    run(make_config(SMALL, changes, {"on_nonfinite": "stop"}), tmp_path, existing="resume")
    assert folder.config().on_nonfinite == "skip"  # a finished run keeps its configuration


def test_nonfinite_steps_can_be_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    changes = {"training": {"lr": 1e30}, "on_nonfinite": "skip", "regularizers": {}}
    result = run(make_config(SMALL, changes), tmp_path)
    assert "skipped a step" in caplog.text
    assert result["class_incremental"]["faa"] is not None
    weights = RunFolder(tmp_path).state()["network"]["backbone.fc.weight"]
    assert not weights.isnan().any()
    warned = [int(text.split("(")[1].split()[0]) for text in caplog.messages if "(" in text]
    assert result["skipped_steps"] >= max(warned) > 1
    assert any("were skipped" in remark for remark in remarks(result))
    with pytest.raises(Crash):
        run(make_config(SMALL, changes), tmp_path / "x", listener=after(14, crash))
    again = run(make_config(SMALL, changes), tmp_path / "x", existing="resume")
    assert again["skipped_steps"] == result["skipped_steps"]


def test_unequal_sees_every_bit() -> None:
    a = {"w": torch.tensor([1.0, float("nan")]), "n": [1, (2,)]}
    same = {"w": torch.tensor([1.0, float("nan")]), "n": [1, (2,)]}
    assert unequal(a, same, "x") == []
    assert unequal(a, {**same, "w": torch.tensor([-0.0, float("nan")])}, "x") == ["x.w"]
    assert unequal({"z": torch.tensor(0.0)}, {"z": torch.tensor(-0.0)}, "x") == ["x.z"]
    assert unequal({"n": 1}, {"n": True}, "x") == ["x.n"]
    assert unequal({"n": 1}, {"m": 1}, "x") == ["x"]
