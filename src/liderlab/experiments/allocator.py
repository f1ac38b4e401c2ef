"""How the process gets its memory."""

from __future__ import annotations

import ctypes
import os
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
LARGEST = 2**30
VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD")


def keep_freed_memory() -> bool:
    """Let the C library keep what tensors free, for the next ones; whether it agreed.

    It would give large blocks back to the system at once and get them anew, page by page, in every
    step: a copy of 17 MB then takes five times as long, a whole training step up to a tenth longer.
    Only for glibc (Linux), and not where the user has chosen otherwise (`MALLOC_…_`, another
    allocator by `LD_PRELOAD`).
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in VARIABLES):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST)) and bool(mallopt(TRIM_THRESHOLD, LARGEST))
