"""Runs in processes of this machine, one each: what kills a run does not kill the others.

The processes are forked from a server that has loaded torch once and does nothing else, so that a
run starts in milliseconds and shares the libraries' memory.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from ..errors import UserError
from ..runs.planned_run import PlannedRun
from .engine import Ended
from .resources import available_memory, gpus, memory_need, resident_memory
from .worker import Ending, Job, execute

LOG = "worker.log"
# what every run loads: torch._dynamo at an optimizer's first step, the rest to draw its figure
PRELOADED = [f"{__package__}.worker", "torch._dynamo", "matplotlib.backends.backend_agg"]
ALSO = {"split-digits": ["sklearn.datasets"]}  # what some benchmarks load, for seconds
CODES: dict[int, Ending] = {0: "done", 10: "failed", 11: "stopped", 12: "busy"}


@dataclass
class _Worker:
    plan: PlannedRun
    process: ForkServerProcess
    slot: int
    need: int
    cancelled: bool = False


class LocalEngine:
    """At most `workers` processes, and no more than there is memory for.

    A run that asks for `cuda`, or `auto`, gets one GPU to itself, by its place among the workers.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise UserError(f"expected at least 1 worker, but got {workers}")
        self._free = list(range(workers))
        self._gpus = gpus()
        self._workers: dict[str, _Worker] = {}
        self._context = multiprocessing.get_context("forkserver")

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        started: list[PlannedRun] = []
        benchmarks = {plan.config.benchmark.name for plan in waiting}
        also = [module for name in benchmarks for module in ALSO.get(name, [])]
        self._context.set_forkserver_preload(PRELOADED + also)  # counts when the server starts
        for plan in waiting:
            need = self._need(plan)
            if not self._free or not self._has_memory(need):
                break
            slot = self._free.pop(0)
            process = self._context.Process(
                target=_work, args=(Job.of(plan), self._gpu(plan, slot))
            )
            process.start()
            self._workers[plan.name] = _Worker(plan, process, slot, need)
            started.append(plan)
        return started

    def ended(self, seconds: float) -> list[Ended]:
        if not self._workers:
            time.sleep(seconds)
            return []
        connection.wait([w.process.sentinel for w in self._workers.values()], seconds)
        gone = [w for w in self._workers.values() if w.process.exitcode is not None]
        return [self._bury(worker) for worker in gone]

    def cancel(self, plan: PlannedRun) -> None:
        if worker := self._workers.get(plan.name):
            worker.cancelled = True
            worker.process.terminate()

    def close(self) -> None:
        for worker in list(self._workers.values()):
            worker.process.kill()
            worker.process.join()
            self._bury(worker)

    def _bury(self, worker: _Worker) -> Ended:
        del self._workers[worker.plan.name]
        self._free.append(worker.slot)
        self._free.sort()
        code = worker.process.exitcode
        worker.process.join()
        worker.process.close()
        ending = CODES.get(code if code is not None else -1)
        if ending is None and worker.cancelled:
            ending = "stopped"  # before it had begun
        return Ended(worker.plan, ending, "" if ending else _why(code, worker.plan.folder))

    def _has_memory(self, need: int) -> bool:
        """Room for one more, when those that run have grown to what they need. One always runs."""
        if not self._workers:
            return True
        growth = sum(
            max(0.0, w.need - resident_memory(w.process.pid)) for w in self._workers.values()
        )
        return need + growth <= available_memory()

    def _need(self, plan: PlannedRun) -> int:
        try:
            return memory_need(plan.config)
        except UserError:
            return 0  # the run will say what is wrong

    def _gpu(self, plan: PlannedRun, slot: int) -> str | None:
        if plan.config.device not in ("cuda", "auto") or not self._gpus:
            return None
        return self._gpus[slot % len(self._gpus)]


def _why(code: int | None, folder: Path) -> str:
    """How a worker died: by which signal, and its last words."""
    if code is not None and code < 0:
        how = f"killed by {signal.Signals(-code).name}"
        how += " (out of memory?)" if -code == signal.SIGKILL else ""
    else:
        how = f"exit code {code}"
    try:
        words = (folder / LOG).read_text(errors="replace").strip().splitlines()
    except OSError:
        words = []
    return f"{how}; {words[-1]}" if words else how


def _work(job: Job, gpu: str | None) -> None:
    """In the worker's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started us; they tell us
    _stop_when_orphaned()
    log = Path(job.folder) / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    ending = execute(job)
    sys.stdout.flush()
    if log.stat().st_size == 0:
        log.unlink()
    sys.exit({ending: code for code, ending in CODES.items()}[ending])


def _stop_when_orphaned() -> None:
    """Nobody would see our result: save, stop, and leave the folder to who takes it up again."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
