"""A run's folder.

config.yaml     complete: `lider run --config` repeats the run
metrics.jsonl   one line per logged step and per task
progress.json   how far it is, for whoever watches; gone once it has finished
result.json     the metrics, the configuration, the versions; written last
checkpoints/    the last two: network, memory, targets, generators, …: everything
accuracy.png    the accuracy matrices
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import UserError
from .checkpoints import Checkpoints
from .config import RunConfig, make_config, read_yaml
from .files import write_atomically

if TYPE_CHECKING:
    from ..types import State

FILES = ("config.yaml", "metrics.jsonl", "progress.json", "result.json", "accuracy.png")
LOCK = ".lock"
PATIENCE = 2.0  # seconds: a looker's glance takes microseconds, a run takes longer than this
MAY_CHANGE = {"checkpoint_every", "on_nonfinite"}  # what came before does not depend on these


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = Checkpoints(self.path / "checkpoints")

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
    def finished(self) -> bool:
        return (self.path / "result.json").is_file()

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
        raise UserError(f"another process is running {self.path}: wait for it")

    def _sweep(self) -> None:
        """Remove what a killed process was in the middle of writing."""
        for folder in (self.path, self.checkpoints.folder):
            for name in (*FILES, "step-*.pt"):
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
        for name in FILES:
            (self.path / name).unlink(missing_ok=True)
        self.checkpoints.clear()
        text = config.as_yaml().encode()
        write_atomically(self.path / "config.yaml", lambda file: file.write(text))

    def config(self) -> RunConfig:
        return make_config(read_yaml(self.path / "config.yaml"))

    def check_same(self, config: RunConfig) -> None:
        """Refuse to go on with another configuration than the run was begun with."""
        there, here = flat(self.config().model_dump()), flat(config.model_dump())
        changed = [
            f"{key} was {there.get(key)!r}, now {here.get(key)!r}"
            for key in sorted(there.keys() | here.keys())
            if there.get(key) != here.get(key) and key not in MAY_CHANGE
        ]
        if changed:
            raise UserError(
                f"{self.path} was begun with another configuration ({'; '.join(changed)}): "
                "choose another --out, or --force to start again"
            )

    def open_metrics(self, length: int) -> IO[bytes]:
        """metrics.jsonl cut to `length` bytes, ready for more: what a checkpoint does not know of
        is written again."""
        file = (self.path / "metrics.jsonl").open("ab")
        file.truncate(length)
        file.seek(0, os.SEEK_END)
        return file

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

    def result(self) -> dict[str, Any]:
        if not self.finished:
            raise UserError(
                f"the run in {self.path} has not finished: go on with: lider resume {self.path}"
            )
        try:
            result: dict[str, Any] = json.loads((self.path / "result.json").read_bytes())
            return result | {"config": dict(result["config"])}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise UserError(f"{self.path / 'result.json'} is damaged: run it again") from None

    def state(self) -> State:
        """The latest checkpoint."""
        state = self.checkpoints.latest()
        if state is None:
            raise UserError(f"{self.path} has no checkpoint: run it again")
        return state


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by their dotted names.

    >>> flat({"a": {"b": 1}, "c": 2})
    {'a.b': 1, 'c': 2}
    """
    items: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            items |= flat(value, f"{prefix}{key}.")
        else:
            items[f"{prefix}{key}"] = value
    return items
