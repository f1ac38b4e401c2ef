"""Ctrl-C and SIGTERM: finish the step, save, then stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """The signal that asked to stop, if any."""

    signal: int | None = None


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Note the first signal instead of obeying it; a second one has its usual effect."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # signals reach the main thread only
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # a shell lets jobs in the background ignore Ctrl-C: they keep ignoring it
    handlers = {n: handler for n, handler in handlers.items() if handler is not signal.SIG_IGN}

    def note(number: int, frame: FrameType | None) -> None:
        request.signal = number
        signal.signal(number, handlers[signal.Signals(number)])

    for number in handlers:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
