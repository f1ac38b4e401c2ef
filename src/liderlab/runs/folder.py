"""A run's folder.

config.yaml     complete: `lider run --config` repeats the run
metrics.jsonl   one line per logged step, per task, and per evaluation during a task
progress.json   steps taken and planned, speed, time left; deleted when the run has finished
result.json     the metrics, the configuration, the versions; written last
checkpoints/    the last two, each with all state: network, memory, targets, generators, …
memory/         the images of a memory on disk, which the checkpoints refer to
tasks/          with keep_tasks: network and method after every task
accuracy.png    the accuracy matrices
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ..config.diff import differences
from ..config.identity import may_differ
from ..config.merging import stored_config
from ..config.schema import RunConfig
from ..config.yaml_values import read_yaml
from ..errors import RunFailed, UserError
from ..files import (
    acquire_lock,
    delete_lock,
    is_locked,
    is_same_file,
    no_link,
    release_lock,
    remove_empty,
    write_atomically,
    write_errors,
)
from .checkpoints import Checkpoints, Damaged, read_state, steps_of, write_state
from .out_of_memory import asked_for
from .result_schema import check_result

if TYPE_CHECKING:
    from ..types import State

FILES = ("config.yaml", "metrics.jsonl", "progress.json", "result.json", "accuracy.png")
LOCK = ".lock"
NO_LINKS = (
    *(LOCK, "metrics.jsonl", "checkpoints", "memory", "tasks"),
    *("tensorboard", "wandb", "wandb.id", "mlflow.id"),
)
MOST = 2**62  # of steps, rows, seconds …; torch's numbers end a little above
PATIENCE = 2.0  # seconds to wait for the lock: `locked` takes it for microseconds


class Busy(UserError):
    """Another process is writing to the folder."""


class OtherConfiguration(UserError):
    """The folder holds a run of another configuration."""


class DamagedResult(UserError):
    """result.json cannot be read, but the last checkpoint can restore it."""


class RunFolder:
    """Reads and writes one run's files. It needs no torch unless tensors are read or written."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self.memory = self.path / "memory"
        self._lock: int | None = None

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """The folder of an existing run, finished or not."""
        folder = cls(path)
        if not folder.begun:
            raise UserError(f"{path} is not a run's folder: it has no config.yaml")
        return folder

    @property
    def begun(self) -> bool:
        return (self.path / "config.yaml").is_file()

    @property
    def foreign(self) -> bool:
        """Whether config.yaml belongs to another program: the folder has no lock of a run, and
        the file is not a run's configuration."""
        if not self.begun or (self.path / LOCK).exists():
            return False
        with suppress(UserError):
            self.config()
            return False
        return True

    @property
    def finished(self) -> bool:
        return (self.path / "result.json").is_file()

    @property
    def intact(self) -> bool:
        """Whether the run has finished with a readable result."""
        with suppress(UserError):
            return bool(self.result())
        return False

    @property
    def occupied(self) -> bool:
        """Whether the folder holds anything but our lock."""
        return self.path.is_dir() and any(file.name != LOCK for file in self.path.iterdir())

    @property
    def locked(self) -> bool:
        """Whether a process is writing to it right now."""
        return is_locked(self.path / LOCK)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer. The system releases the lock if the process dies."""
        for name in NO_LINKS:  # they would be emptied, deleted or written to elsewhere
            if (self.path / name).is_symlink():
                raise UserError(
                    f"{self.path / name} is a link, and a run writes to its folder only"
                )
        with write_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                lock = acquire_lock(self.path / LOCK, PATIENCE)
            except TimeoutError:
                raise Busy(f"another process is running {self.path}: wait for it") from None
            except FileNotFoundError:  # a refused process deletes its folder and lock
                message = f"another process has just removed {self.path}: try again"
                raise UserError(message) from None
        self._lock = lock
        try:
            self._delete_temporary_files()
            yield
        finally:
            self._lock = None
            release_lock(lock)

    def check_held(self) -> None:
        """Stop a run whose folder was deleted, or deleted and made anew for another run.

        Called before every write. The open lock keeps its inode from being used again.
        """
        if self._lock is None or not is_same_file(self._lock, self.path / LOCK):
            raise RunFailed(f"{self.path} was deleted while the run was going on: it is lost")

    def _delete_temporary_files(self) -> None:
        """Delete the files that a killed process was writing."""
        for folder in (self.path, self.checkpoints.folder, self.path / "tasks"):
            for name in (*FILES, "step-*.pt", "task-*.pt"):
                for file in folder.glob(f".{name}.*"):
                    file.unlink(missing_ok=True)

    def begin(self, config: RunConfig) -> None:
        """Start afresh: delete an earlier run's files, and no others."""
        with write_errors(self.path):
            self._clear()
        try:
            self._write_config(config)
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
            from ..memory.disk_rows import remove_rows

            remove_rows(self.memory)

    def remove(self) -> None:
        """Delete the run's files, and the folder unless it holds others."""
        self.check_held()
        self._clear()
        delete_lock(self.path / LOCK)
        remove_empty(self.path)

    def _write_config(self, config: RunConfig) -> None:
        with write_errors(self.path):
            write_atomically(self.path / "config.yaml", config.as_yaml().encode())

    def config(self) -> RunConfig:
        file = self.path / "config.yaml"
        tree = read_yaml(file)
        try:
            return stored_config(tree)
        except UserError as error:
            raise UserError(f"{file}: {error}") from None

    def check_same(self, config: RunConfig, state: State | None = None) -> None:
        """Refuse another configuration than the run was begun with.

        config.yaml may have been edited, so the configurations in the result and in the checkpoint
        `state` count too; older versions wrote none into checkpoints.
        """
        self._check_same(self.config(), config, "delete that one to start again")
        recorded = self.result() if self.intact else state or {}
        if "config" in recorded:
            before = stored_config(recorded["config"])
            self._check_same(before, config, "undo the change of its config.yaml")

    def _check_same(self, before: RunConfig, now: RunConfig, advice: str) -> None:
        found, free = differences(before.model_dump(), now.model_dump()), may_differ("resume")
        changed = [f"{field} {how}" for field, how in found.items() if field not in free]
        if changed:
            raise OtherConfiguration(
                f"{self.path} was begun with another configuration ({'; '.join(changed)}): "
                f"choose another folder, or {advice}"
            )

    def update_config(self, config: RunConfig) -> None:
        """Write the fields that may change on resuming into config.yaml."""
        if self.config() != config:
            self._write_config(config)

    def open_metrics(self, length: int) -> IO[bytes]:
        """metrics.jsonl for appending, cut to `length` bytes: the lines after the checkpoint are
        written again."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.fdopen(no_link(self.path / "metrics.jsonl", flags), "ab")
        file.truncate(length)
        file.seek(0, os.SEEK_END)
        return file

    def resume_state(self) -> State | None:
        """The latest checkpoint that is intact and whose logged lines are all in metrics.jsonl;
        None before the first one."""
        file = self.path / "metrics.jsonl"
        length = file.stat().st_size if file.is_file() else 0

        def problem(state: State) -> str | None:
            if (reason := _foreign(state)) or state["logged"] <= length:
                return reason
            return f"{file} is shorter than it says"

        return self.checkpoints.latest(problem)

    @contextmanager
    def consistent(self) -> Iterator[None]:
        """Explain an error in building objects from several of the run's files."""
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
        """The lines of metrics.jsonl, without an incomplete last one."""
        try:
            lines = (self.path / "metrics.jsonl").read_bytes().split(b"\n")[:-1]
            return [dict(json.loads(line)) for line in lines]
        except OSError:
            raise UserError(f"{self.path} has no metrics.jsonl: run it again") from None
        except (ValueError, TypeError):
            raise UserError(f"{self.path / 'metrics.jsonl'} is damaged: run it again") from None

    def write_progress(self, progress: dict[str, Any]) -> None:
        """Replace progress.json; called often, so it does not wait for the disk."""
        temporary = self.path / ".progress.json.new"
        temporary.write_text(json.dumps(progress))
        temporary.replace(self.path / "progress.json")

    def progress(self) -> dict[str, Any] | None:
        """The last progress.json; None before the first step and after the last."""
        try:
            return dict(json.loads((self.path / "progress.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write_result(self, result: dict[str, Any]) -> None:
        text = json.dumps(result, indent=1, ensure_ascii=False)
        write_atomically(self.path / "result.json", text.encode() + b"\n")
        (self.path / "progress.json").unlink(missing_ok=True)

    def holds(self, result: Mapping[str, Any]) -> bool:
        """Whether result.json is this result: by now the folder may be another run's."""
        with suppress(OSError, ValueError):
            written = json.loads((self.path / "result.json").read_bytes())
            return bool(written == json.loads(json.dumps(result)))
        return False

    def delete_result(self) -> None:
        (self.path / "result.json").unlink(missing_ok=True)

    def result(self) -> dict[str, Any]:
        resume = f"lider resume {shlex.quote(str(self.path))}"
        if not self.finished:
            raise UserError(f"the run in {self.path} has not finished: go on with: {resume}")
        file = self.path / "result.json"
        try:
            result: dict[str, Any] = json.loads(file.read_bytes())
            check_result(result)
            return result
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from None
        except ValueError:
            if not self.checkpoints.files():
                raise UserError(f"{file} is damaged: run it again") from None
            raise DamagedResult(f"{file} is damaged: {resume} writes it anew") from None

    def state(self) -> State:
        """The latest intact checkpoint; of a finished run, only the one of its last step."""
        file = self.last_checkpoint()
        if not self.finished:
            return cast("State", self.checkpoints.latest(_foreign))
        try:
            state = read_state(file)
            if reason := _foreign(state):
                raise Damaged(reason)
            return state
        except (Damaged, OSError) as error:
            raise UserError(
                f"the last checkpoint of {self.path} cannot be used: {error}; run it again"
            ) from None

    def last_checkpoint(self) -> Path:
        """The file of the newest checkpoint, intact or not; of a finished run, of its last step."""
        files = self.checkpoints.files()
        if not files:
            raise UserError(f"{self.path} has no checkpoint: run it again")
        # older versions did not write the number of steps
        if self.finished and self.result().get("steps") not in (None, steps_of(files[0])):
            raise UserError(f"{self.path} has lost its last checkpoint: run it again")
        return files[0]

    def read_memory(self, state: State) -> State:
        """The state, with images of a memory on disk in place of their positions in its files."""
        from ..memory.disk_rows import stored_bytes

        columns = {
            name: stored_bytes(self.memory / f"{name}.rows", column)
            if isinstance(column, Mapping)
            else column
            for name, column in state["memory"]["data"].items()
        }
        return {**state, "memory": {**state["memory"], "data": columns}}

    def keep_task(self, index: int, state: State) -> None:
        (self.path / "tasks").mkdir(exist_ok=True)
        write_state(self._task_file(index), state)

    def task_state(self, index: int) -> State:
        """Network and method after task `index`."""
        file = self._task_file(index)
        try:
            return read_state(file)
        except FileNotFoundError:
            raise UserError(
                f"{self.path} did not keep its network after every task: run it with "
                "--set keep_tasks=true"
            ) from None
        except (Damaged, OSError) as error:
            raise UserError(f"{file} cannot be used: {error}") from None

    def _task_file(self, index: int) -> Path:
        return self.path / "tasks" / f"task-{index + 1:03d}.pt"


def _foreign(state: State) -> str | None:
    """Why a state with a valid checksum is not that of a run; None if it is."""
    cursor, memory = state.get("cursor", {}), state.get("memory", {})
    data = memory.get("data") if isinstance(memory, Mapping) else None
    for tree in (cursor, memory, data, state.get("network"), state.get("method")):
        if not isinstance(tree, Mapping):
            return "it does not hold a run's state"
    counts = [*cursor.values(), memory.get("seen"), memory.get("filled")]
    counts += [state.get("steps"), state.get("logged")]
    seconds = [state.get("seconds")]
    # older versions did not write all of these
    counts += [state[name] for name in ("passes", "skipped") if state.get(name) is not None]
    optional = ("seconds_cpu", "seconds_training")
    seconds += [state[name] for name in optional if state.get(name) is not None]
    if all(isinstance(count, int) and 0 <= count < MOST for count in counts) and all(
        isinstance(number, (int, float)) and 0 <= number < MOST for number in seconds
    ):
        return None
    return "it holds numbers that no run has"
