"""The data, first weights and software versions that a run is made from."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import torch

from .. import __version__
from ..errors import UserError
from ..streams.fingerprint import fingerprint
from ..streams.splitting import SplitStream

Origin = dict[str, Any]


def origin_of(stream: SplitStream, pretrained: Mapping[str, str] | None) -> Origin:
    """data: fingerprint, and number of training and test images of every task. pretrained: name
    and checksum of the first weights."""
    data = {
        "fingerprint": fingerprint(stream),
        "train": [len(task.train) for task in stream.tasks],
        "test": [len(task.test) for task in stream.tasks],
    }
    return {"data": data, "pretrained": None if pretrained is None else dict(pretrained)}


def check_origin(before: Mapping[str, Any], now: Origin, folder: Path) -> None:
    """Refuse to resume with other data or first weights than the run was begun with.

    before: the origin in the run's folder; older versions wrote none.
    """
    for part, mark in (("data", "fingerprint"), ("pretrained", "sha256")):
        old, new = before.get(part), now[part]
        if old is not None and new is not None and old[mark] != new[mark]:
            name = "data" if part == "data" else f"weights than these in {new['name']}"
            raise UserError(
                f"{folder} was begun with other {name} ({mark} {old[mark][:16]}, now "
                f"{new[mark][:16]}): bring those back, or start again in another folder"
            )


def versions() -> dict[str, Any]:
    """Versions and hardware that floating-point results depend on."""
    return {
        "liderlab": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "processor": processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }


def processor() -> str:
    """The CPU's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
