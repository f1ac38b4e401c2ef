"""A run's folder.

config.yaml     complete: `lider run --config` repeats the run
metrics.jsonl   one line per logged step and per task
result.json     the metrics, the configuration, the versions
checkpoint.pt   network, memory, targets, generators, …: everything
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

import torch

from ..errors import UserError
from ..types import State
from .config import RunConfig, make_config, read_yaml
from .files import write_atomically

FILES = ("config.yaml", "metrics.jsonl", "result.json", "checkpoint.pt", "accuracy.png")


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, *, force: bool = False) -> RunFolder:
        """A folder for a new run; an existing one is only used if empty, or by force.

        Force removes an earlier run's own files and nothing else.
        """
        folder = cls(path)
        try:
            if folder.path.is_dir() and any(folder.path.iterdir()) and not force:
                raise UserError(f"{path} exists and is not empty: choose another --out, or --force")
            folder.path.mkdir(parents=True, exist_ok=True)
            for name in FILES:
                (folder.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"cannot write to {path}: {error.strerror}") from None
        return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """A finished run's folder."""
        folder = cls(path)
        if not (folder.path / "config.yaml").is_file():
            raise UserError(f"{path} is not a run's folder: it has no config.yaml")
        if not (folder.path / "result.json").is_file():
            raise UserError(f"the run in {path} has not finished: it has no result.json")
        return folder

    def write_config(self, config: RunConfig) -> None:
        text = config.as_yaml().encode()
        write_atomically(self.path / "config.yaml", lambda file: file.write(text))

    def config(self) -> RunConfig:
        return make_config(read_yaml(self.path / "config.yaml"))

    def open_metrics(self) -> IO[str]:
        return (self.path / "metrics.jsonl").open("a", encoding="utf-8", buffering=1)

    def metrics(self) -> list[dict[str, Any]]:
        with (self.path / "metrics.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def write_result(self, result: dict[str, Any]) -> None:
        text = json.dumps(result, indent=1, ensure_ascii=False).encode() + b"\n"
        write_atomically(self.path / "result.json", lambda file: file.write(text))

    def result(self) -> dict[str, Any]:
        try:
            result: dict[str, Any] = json.loads((self.path / "result.json").read_bytes())
        except ValueError:
            raise UserError(f"{self.path / 'result.json'} is damaged: run it again") from None
        return result

    def write_checkpoint(self, state: State) -> None:
        write_atomically(self.path / "checkpoint.pt", lambda file: torch.save(state, file))

    def checkpoint(self) -> State:
        try:
            state: State = torch.load(
                self.path / "checkpoint.pt", map_location="cpu", weights_only=True
            )
        except Exception:  # whatever is wrong with the bytes, the answer is the same
            raise UserError(
                f"{self.path / 'checkpoint.pt'} is missing or damaged: run it again"
            ) from None
        return state
