"""Ctrl-C and SIGTERM: finish the step, save, then stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
