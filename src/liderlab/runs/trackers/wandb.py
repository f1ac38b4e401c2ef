"""Weights & Biases."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class WandB:
    """One W&B run per run folder, in the project WANDB_PROJECT (default: liderlab)."""

    def __init__(self, folder: Path, config: Mapping[str, Any], step: int) -> None:
        import os

        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # read when wandb is imported
        import wandb

        folder = folder.absolute()
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "liderlab"),
            name=folder.name,
            id=_identity(folder, step),
            resume="allow",
            dir=folder,
            config=dict(config),
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if step >= self._run.step:  # a resumed run repeats steps that W&B has already logged
            self._run.log(dict(values), step=step)

    def close(self, finished: bool) -> None:
        self._run.finish(exit_code=0 if finished else 255)


def _identity(folder: Path, step: int) -> str:
    """The W&B id of the run: new for every start, kept in the folder for resuming."""
    import time

    file = folder / "wandb.id"
    if step == 0 or not file.exists():
        key = f"{folder} {time.time_ns()}"
        file.write_text(hashlib.sha256(key.encode()).hexdigest()[:16])
    return file.read_text()
