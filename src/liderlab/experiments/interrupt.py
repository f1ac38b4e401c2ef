"""Ctrl-C and SIGTERM: finish the step, save, then stop."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(Exception):
    """What was asked to stop has saved everything. command: goes on with it."""

    def __init__(self, number: int, where: str, command: str = "lider resume") -> None:
        words = f"{command} {shlex.quote(where)}" if where else command
        super().__init__(f"stopped: everything is saved; go on with: {words}")
        self.exit_code = 128 + number

    def saying(self, message: str) -> Stopped:
        """The same stop in other words, where more is known about what was stopped."""
        self.args = (f"stopped: {message}",)
        return self


class StopRequest:
    """The first signal is noted here; a second one of the same kind takes its usual effect."""

    signal: int | None = None


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # signals reach the main thread only
        return
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # whoever starts a job in the background may have it ignore Ctrl-C: so be it
    usual = {number: how for number, how in usual.items() if how is not signal.SIG_IGN}

    def note(number: int, frame: FrameType | None) -> None:
        request.signal = number
        signal.signal(number, usual[signal.Signals(number)])

    for number in usual:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
