"""Forked processes of a warm one: torch and the package are loaded once for thousands of cases."""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def answer_of(work: Callable[[], str], seconds: float, memory: int | None = None) -> str:
    """What a forked, silent process answers; empty if it was ended by a signal.

    seconds: of processor time, after which SIGPROF ends it. On the clock it may take ten times that
    and ten minutes, since the machine may be busy. memory: bytes that it may allocate on top of its
    parent's.
    """
    reader, writer = os.pipe()
    if not (child := os.fork()):
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, 600 + 10 * seconds)
        if memory is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + memory
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            answer = work().encode()
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(answer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def modules_loaded_by(work: Callable[[], object]) -> list[str]:
    """The modules that some work loads, in their order."""
    before = set(sys.modules)
    with suppress(Exception, SystemExit):
        work()
    return [name for name in sys.modules if name not in before]


def load(names: list[str]) -> None:
    """Load modules, so that forked processes find them. Some can only be loaded by others."""
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)


def warm_up(work: Callable[[], object]) -> None:
    """Load what some work loads, which a forked process does: this one stays as it is."""
    load(answer_of(lambda: "\n".join(modules_loaded_by(work)), 600).splitlines())
