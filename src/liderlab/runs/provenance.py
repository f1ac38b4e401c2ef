"""What a run was made from, so that nobody goes on with, or compares, something else unawares."""

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
    """data: a fingerprint, and the number of training and test images of every task. pretrained:
    name and checksum of the weights that it starts from."""
    data = {
        "fingerprint": fingerprint(stream),
        "train": [len(task.train) for task in stream.tasks],
        "test": [len(task.test) for task in stream.tasks],
    }
    return {"data": data, "pretrained": None if pretrained is None else dict(pretrained)}


def check_origin(before: Mapping[str, Any], now: Origin, folder: Path) -> None:
    """Refuse to go on with other data or first weights than a run was begun with.

    before: what the run has written down; older versions wrote nothing.
    """
    for what, mark in (("data", "fingerprint"), ("pretrained", "sha256")):
        old, new = before.get(what), now[what]
        if old is not None and new is not None and old[mark] != new[mark]:
            called = "data" if what == "data" else f"weights than these in {new['name']}"
            raise UserError(
                f"{folder} was begun with other {called} ({mark} {old[mark][:16]}, now "
                f"{new[mark][:16]}): bring those back, or start again in another folder"
            )


def versions() -> dict[str, Any]:
    """Of everything that computes."""
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
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
