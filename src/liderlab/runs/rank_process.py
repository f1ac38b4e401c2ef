"""The process of a rank other than 0, started by rank 0 (`distributed.launch.rank_processes`).

Rank 0 sends it the job. The process writes no file, and prints an error only if rank 0 cannot.
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
from typing import Any, NoReturn

PATIENCE = 3.0  # seconds in which rank 0 should end after its connections have closed


def main() -> None:
    rank = int(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM):  # until training handles them
        signal.signal(number, lambda number, frame: os._exit(128 + number))
    warnings.simplefilter("ignore")
    logging.getLogger("liderlab").setLevel(logging.ERROR)
    job = json.load(sys.stdin)
    threading.Thread(target=_watch_parent, args=(job, rank), daemon=True).start()

    from ..distributed.launch import SilentExit
    from ..distributed.team import RankLost
    from ..errors import RunFailed, UserError

    try:
        _take_part(job, rank)
    except SilentExit as ending:
        os._exit(int(str(ending.code)))
    except RankLost:
        deadline = time.monotonic() + PATIENCE
        while os.getppid() == job["parent"] and time.monotonic() < deadline:
            time.sleep(0.05)
        _end_without_parent(job, rank)
        os._exit(1)
    except (RunFailed, UserError, OSError) as error:
        _fail(f"rank {rank}: {error}")


def _take_part(job: dict[str, Any], rank: int) -> None:
    """Build the run, meet the other ranks at rank 0's port, and train with them."""
    from ..config.merging import make_config
    from ..distributed.launch import choose_device, connect, open_store, ready_key
    from ..distributed.placement import Placement
    from ..distributed.team import Team
    from .execute import take_part
    from .folder import RunFolder

    config, size = make_config(job["config"]), job["size"]
    placement, team = Placement(rank, size, rank, size), Team(rank, size)
    device = choose_device(config.device, placement)

    def meet() -> None:
        store = open_store(job["port"])
        store.set(ready_key(rank), "")
        connect(team, placement, device, store)

    take_part(config, RunFolder(Path(job["out"])), team, meet)


def _watch_parent(job: dict[str, Any], rank: int) -> None:
    """End this process when rank 0 ends, even in the middle of a long computation."""
    while True:
        _end_without_parent(job, rank)
        time.sleep(0.5)


def _end_without_parent(job: dict[str, Any], rank: int) -> None:
    if os.getppid() != job["parent"]:
        resume = shlex.join(["lider", "resume", job["out"]])
        _fail(f"rank 0 has ended, and rank {rank} with it; go on with: {resume}")


def _fail(text: str) -> NoReturn:
    os.write(2, f"lider: {' '.join(text.split())}\n".encode())
    os._exit(1)


if __name__ == "__main__":
    main()
