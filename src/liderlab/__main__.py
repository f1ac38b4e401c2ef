"""The command `lider` (or `python -m liderlab`): answers signals, then runs the command line.

Importing torch takes a second, and an exception that Ctrl-C raises during an import can surface as
any other error. So a signal during an import ends the process at once; nothing has begun that would
need cleaning up. At any other time it raises an exception, until a run installs its own handler
(`runs/interruption.py`).
"""

import os
import signal
import sys
from types import FrameType

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Terminated(SystemExit):
    """Raised on SIGTERM outside a run."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


def stop(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT and SIGTERM."""
    if _importing(frame):
        say(WORDS[signal.Signals(number)])
        os._exit(128 + number)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def say(word: str) -> None:
    """Print without Python's streams, which the signal may have interrupted."""
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
        if signal.getsignal(number) is not signal.SIG_IGN:  # the parent process may ignore it
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
