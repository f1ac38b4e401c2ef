"""What the numbers of a run may depend on beside its configuration."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy
import torch

from .. import __version__


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
