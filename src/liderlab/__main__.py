"""What the command `lider` (or `python -m liderlab`) runs first: signals are answered from here on.

Importing torch takes a second, and an exception raised in there by Ctrl-C can come out as anything.
So while an import is under way a signal ends the process at once; nothing has begun that would have
to be tidied up. At any other time it is an exception, and later the run's own (`interrupt.py`).
"""

import os
import signal
import sys
from types import FrameType

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Terminated(SystemExit):
    """SIGTERM, outside a run."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


def stop(number: int, frame: FrameType | None) -> None:
    """The handler of both signals."""
    if _importing(frame):
        say(WORDS[signal.Signals(number)])
        os._exit(128 + number)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def say(word: str) -> None:
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar may hide it
    os.write(2, f"{show_cursor}lider: {word}\n".encode())


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def main() -> None:
    for number in WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as whoever started us wants it
            signal.signal(number, stop)
    try:
        from .cli import main as command

        command()
    except KeyboardInterrupt:
        say(WORDS[signal.SIGINT])
        sys.exit(128 + signal.SIGINT)
    except Terminated:
        say(WORDS[signal.SIGTERM])
        raise


if __name__ == "__main__":
    main()
