"""Cores, GPUs and memory of this machine, as far as this process may use them."""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> list[str]:
    """Names, for CUDA_VISIBLE_DEVICES, of the GPUs that this process may use."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in visible.split(",") if name]
    return [str(number) for number in range(torch.cuda.device_count())]


def available_memory() -> float:
    """Bytes that can be allocated without swapping; infinite where the system reports none."""
    return min(_machine_memory(), _container_memory())


def _machine_memory() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024.0 * int(s.split()[1]) for s in lines if s.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return math.inf


def _container_memory(folder: Path = Path("/sys/fs/cgroup")) -> float:
    """Bytes left below a container's limit (cgroup v2); its file cache counts as free."""
    try:
        limit = float((folder / "memory.max").read_text())
        used = float((folder / "memory.current").read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no cgroup, or "max": no limit
        return math.inf
    cache = next((float(s.split()[1]) for s in lines if s.startswith("inactive_file ")), 0.0)
    return limit - used + cache


def resident_memory(pid: int | None) -> float:
    """Bytes that a process holds; 0 where the system reports none."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
