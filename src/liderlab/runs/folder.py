"""A run's folder.

config.yaml     complete: `lider run --config` repeats the run
metrics.jsonl   one line per logged step and per task
progress.json   how far it is, for whoever watches; gone once it has finished
result.json     the metrics, the configuration, the versions; written last
checkpoints/    the last two: network, memory, targets, generators, …: everything
memory/         the images of a memory on disk, which the checkpoints refer to
tasks/          with keep_tasks: network and method after every task
accuracy.png    the accuracy matrices
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ..config.diff import differences
from ..config.merging import stored_config
from ..config.schema import RunConfig
from ..config.yaml_values import read_yaml
from ..errors import UserError
from ..files import write_atomically
from .checkpoints import Checkpoints, Damaged, pack, steps_of, unpack
from .out_of_memory import asked_for
from .result_schema import check_result

if TYPE_CHECKING:
    from ..types import State

FILES = ("config.yaml", "metrics.jsonl", "progress.json", "result.json", "accuracy.png")
LOCK = ".lock"
PATIENCE = 2.0  # seconds: a looker's glance takes microseconds, a run takes longer than this
# what came before does not depend on these
MAY_CHANGE = {"checkpoint_every", "on_nonfinite", "tracker", "devices", "strategy"}


class Busy(UserError):
    """Another process is writing the folder."""


class DamagedResult(UserError):
    """A result that cannot be read, and that the last checkpoint can give again."""


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self.memory = self.path / "memory"

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """The folder of a run, finished or not."""
        folder = cls(path)
        if not folder.begun:
            raise UserError(f"{path} is not a run's folder: it has no config.yaml")
        return folder

    @property
    def begun(self) -> bool:
        return (self.path / "config.yaml").is_file()

    @property
    def foreign(self) -> bool:
        """Whether its config.yaml is somebody else's: no run was ever here, nor could read it."""
        if not self.begun or (self.path / LOCK).exists():
            return False
        try:
            self.config()
        except UserError:
            return True
        return False

    @property
    def finished(self) -> bool:
        return (self.path / "result.json").is_file()

    @property
    def intact(self) -> bool:
        """Whether it has finished, and its result can be read."""
        with suppress(UserError):
            return self.finished and bool(self.result())
        return False

    @property
    def taken(self) -> bool:
        """Whether anything but our own lock is in it."""
        return self.path.is_dir() and any(file.name != LOCK for file in self.path.iterdir())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer; the lock dies with its process."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            self._take(handle)
            self._check_place(handle)
            self._sweep()
            yield
        finally:
            os.close(handle)

    def _take(self, handle: int) -> None:
        """Somebody who only looks whether it is locked holds it for a moment: be patient."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.01)
        raise Busy(f"another process is running {self.path}: wait for it")

    def _check_place(self, handle: int) -> None:
        """Whoever was refused removes what it had begun, the lock that we waited for included."""
        try:
            if os.path.samestat(os.fstat(handle), os.stat(self.path / LOCK)):
                return
        except OSError:
            pass
        raise UserError(f"another process has just removed {self.path}: try again")

    def _sweep(self) -> None:
        """Remove what a killed process was in the middle of writing."""
        for folder in (self.path, self.checkpoints.folder, self.path / "tasks"):
            for name in (*FILES, "step-*.pt", "task-*.pt"):
                for file in folder.glob(f".{name}.*"):
                    file.unlink(missing_ok=True)

    @property
    def locked(self) -> bool:
        """Whether a process is writing it right now."""
        try:
            with (self.path / LOCK).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass  # nobody has been here
        return False

    def begin(self, config: RunConfig) -> None:
        """Start afresh: remove an earlier run's own files, and nothing else."""
        self._clear()
        try:
            self.write_config(config)
        except UserError:
            self.remove()
            raise

    def _clear(self) -> None:
        for name in FILES:
            (self.path / name).unlink(missing_ok=True)
        self.checkpoints.clear()
        for file in self.path.glob("tasks/task-*.pt"):
            file.unlink()
        if self.memory.exists():
            from ..memory.disk_rows import remove_rows  # torch is not needed to look at a run

            remove_rows(self.memory)

    def remove(self) -> None:
        """Take back what was begun; files that are not ours stay, and the folder with them."""
        self._clear()
        (self.path / LOCK).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def write_config(self, config: RunConfig) -> None:
        text = config.as_yaml().encode()
        try:
            write_atomically(self.path / "config.yaml", lambda file: file.write(text))
        except OSError as error:
            raise UserError(f"cannot write to {self.path}: {error.strerror}") from None

    def config(self) -> RunConfig:
        file = self.path / "config.yaml"
        tree = read_yaml(file)
        try:
            return stored_config(tree)
        except UserError as error:
            raise UserError(f"{file}: {error}") from None

    def check_same(self, config: RunConfig) -> None:
        """Refuse to go on with another configuration than the run was begun with."""
        found = differences(self.config().model_dump(), config.model_dump())
        changed = [f"{field} {how}" for field, how in found.items() if field not in MAY_CHANGE]
        if changed:
            raise UserError(
                f"{self.path} was begun with another configuration ({'; '.join(changed)}): "
                "choose another folder, or delete that one to start again"
            )

    def follow(self, config: RunConfig) -> None:
        """Go on with this configuration: config.yaml says what runs, also where it MAY_CHANGE."""
        self.check_same(config)
        if not self.finished and self.config() != config:
            self.write_config(config)

    def open_metrics(self, length: int) -> IO[bytes]:
        """metrics.jsonl cut to `length` bytes, ready for more: what a checkpoint does not know of
        is written again."""
        file = (self.path / "metrics.jsonl").open("ab")
        file.truncate(length)  # never longer than it was: `resumable` has looked
        file.seek(0, os.SEEK_END)
        return file

    def resumable(self) -> State | None:
        """The latest checkpoint that a run can go on from, None if there is none yet: it is whole,
        and metrics.jsonl still holds all that was logged before it."""
        file = self.path / "metrics.jsonl"
        length = file.stat().st_size if file.is_file() else 0
        return self.checkpoints.latest(
            lambda state: None if state["logged"] <= length else f"{file} is shorter than it says"
        )

    @contextmanager
    def consistent(self) -> Iterator[None]:
        """What is made in here of several files of the run needs them to fit together."""
        try:
            yield
        except UserError:
            raise
        except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            if isinstance(error, RuntimeError) and asked_for(error) is not None:
                raise
            raise UserError(
                f"{self.path} is damaged: its files do not fit together; run it again"
            ) from None

    def metrics(self) -> list[dict[str, Any]]:
        """The lines written so far; a last one that is still being written is left out."""
        try:
            lines = (self.path / "metrics.jsonl").read_bytes().split(b"\n")[:-1]
            return [dict(json.loads(line)) for line in lines]
        except OSError:
            raise UserError(f"{self.path} has no metrics.jsonl: run it again") from None
        except (ValueError, TypeError, RecursionError):
            raise UserError(f"{self.path / 'metrics.jsonl'} is damaged: run it again") from None

    def write_progress(self, progress: dict[str, Any]) -> None:
        """Often and cheaply: worth nothing after a power cut, so the disk need not confirm it."""
        temporary = self.path / ".progress.json.new"
        temporary.write_text(json.dumps(progress))
        temporary.replace(self.path / "progress.json")

    def progress(self) -> dict[str, Any] | None:
        """What the run last said of itself; None if it has not, or has finished."""
        try:
            return dict(json.loads((self.path / "progress.json").read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def write_result(self, result: dict[str, Any]) -> None:
        text = json.dumps(result, indent=1, ensure_ascii=False).encode() + b"\n"
        write_atomically(self.path / "result.json", lambda file: file.write(text))
        (self.path / "progress.json").unlink(missing_ok=True)

    def forget_result(self) -> None:
        """What is damaged is written anew, from the last checkpoint."""
        (self.path / "result.json").unlink(missing_ok=True)

    def result(self) -> dict[str, Any]:
        if not self.finished:
            raise UserError(
                f"the run in {self.path} has not finished: go on with: "
                f"lider resume {shlex.quote(str(self.path))}"
            )
        try:
            result: dict[str, Any] = json.loads((self.path / "result.json").read_bytes())
            check_result(result)
            return result
        except OSError as error:
            raise UserError(f"cannot read {self.path / 'result.json'}: {error.strerror}") from None
        except (ValueError, RecursionError):
            what = f"{self.path / 'result.json'} is damaged"
            if not self.checkpoints.files():
                raise UserError(f"{what}: run it again") from None
            how = f"lider resume {shlex.quote(str(self.path))} writes it anew"
            raise DamagedResult(f"{what}: {how}") from None

    def state(self) -> State:
        """The latest checkpoint that is whole; of a finished run its last one, or none."""
        file = self.last_checkpoint()
        if not self.finished:
            return cast("State", self.checkpoints.latest())
        try:
            return self.checkpoints.read(file)
        except (Damaged, OSError) as error:
            raise UserError(
                f"the last checkpoint of {self.path} cannot be used: {error}; run it again"
            ) from None

    def last_checkpoint(self) -> Path:
        """The newest one, whole or not; that of a finished run must be from its very end."""
        files = self.checkpoints.files()
        if not files:
            raise UserError(f"{self.path} has no checkpoint: run it again")
        if self.finished and self._steps() not in (None, steps_of(files[0])):
            raise UserError(f"{self.path} has lost its last checkpoint: run it again")
        return files[0]

    def _steps(self) -> int | None:
        """How many a finished run took; None if an older version wrote nothing about it."""
        steps: int | None = self.result().get("steps")
        if steps is None:
            with suppress(UserError, KeyError, IndexError):
                steps = [x["step"] for x in self.metrics() if x["kind"] == "task"][-1]
        return steps

    def keep_task(self, index: int, state: State) -> None:
        (self.path / "tasks").mkdir(exist_ok=True)
        data = pack(state)
        write_atomically(self._task_file(index), lambda file: file.write(data))

    def task_state(self, index: int) -> State:
        """Network and method as they were after that task."""
        file = self._task_file(index)
        try:
            return unpack(file.read_bytes())
        except FileNotFoundError:
            raise UserError(
                f"{self.path} did not keep its network after every task: run it with "
                "--set keep_tasks=true"
            ) from None
        except (Damaged, OSError) as error:
            raise UserError(f"{file} cannot be used: {error}") from None

    def _task_file(self, index: int) -> Path:
        return self.path / "tasks" / f"task-{index + 1:03d}.pt"
