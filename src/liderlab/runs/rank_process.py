"""One more rank of a run, started by rank 0 (`ranks.Helpers`), which tells it what to do.

It writes nothing and says nothing, unless rank 0 is not there any more to do so.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

PATIENCE = 3.0  # seconds that a parent takes at most to be gone, when its connections are


def main() -> None:
    rank = int(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM):  # until the run has its own way with them
        signal.signal(number, lambda number, frame: os._exit(128 + number))
    warnings.simplefilter("ignore")
    logging.getLogger("liderlab").setLevel(logging.ERROR)
    job = json.load(sys.stdin)
    parent = job["parent"]
    threading.Thread(target=_watch, args=(parent, rank, job["out"]), daemon=True).start()

    from ..config.merging import make_config
    from ..distributed.launch import Quiet
    from ..distributed.team import RankLost
    from ..errors import RunFailed, UserError
    from .execute import help_out

    try:
        help_out(make_config(job["config"]), Path(job["out"]), rank, job["size"], job["port"])
    except Quiet as ending:
        os._exit(int(str(ending.code)))
    except RankLost:
        deadline = time.monotonic() + PATIENCE
        while os.getppid() == parent and time.monotonic() < deadline:
            time.sleep(0.05)
        _end_if_alone(parent, rank, job["out"])
        os._exit(1)
    except (RunFailed, UserError, OSError) as error:
        say(f"rank {rank}: {error}")
        os._exit(1)


def _watch(parent: int, rank: int, out: str) -> None:
    """Nobody is left to wait for: also in the middle of a long computation."""
    while True:
        _end_if_alone(parent, rank, out)
        time.sleep(0.5)


def _end_if_alone(parent: int, rank: int, out: str) -> None:
    if os.getppid() != parent:
        again = shlex.join(["lider", "resume", str(out)])
        say(f"rank 0 has ended, and rank {rank} with it; go on with: {again}")
        os._exit(1)


def say(text: str) -> None:
    os.write(2, f"lider: {' '.join(text.split())}\n".encode())


if __name__ == "__main__":
    main()
