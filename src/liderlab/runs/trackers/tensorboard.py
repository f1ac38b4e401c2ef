"""TensorBoard: event files in the run's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


class TensorBoard:
    """`tensorboard --logdir runs` shows all runs below a folder, each by its folder's name."""

    def __init__(self, folder: Path, config: Mapping[str, Any], step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # drop the steps after the last checkpoint, which are logged again
        self._writer = SummaryWriter(folder / "tensorboard", purge_step=step + 1 if step else None)
        if step == 0:
            text = yaml.safe_dump(dict(config), allow_unicode=True, sort_keys=False)
            self._writer.add_text("config", f"```\n{text}```")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self, finished: bool) -> None:
        self._writer.close()
