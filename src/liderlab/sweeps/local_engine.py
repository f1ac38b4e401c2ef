"""Runs on this machine, each in a process of its own: if one is killed, the rest continue.

The processes are forked from a server that has loaded torch once, so that a run starts in
milliseconds and shares the libraries' memory.
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
from .memory_estimate import memory_need
from .resources import available_memory, gpus, resident_memory
from .worker import Ending, Job, execute

LOG = "worker.log"
# every run loads these: matplotlib for its figure
PRELOADED = [f"{__package__}.worker", "matplotlib.backends.backend_agg"]
PRELOADED_FOR = {"split-digits": ["sklearn.datasets"]}  # slow imports of a benchmark
EXIT_CODES: dict[Ending, int] = {"done": 0, "failed": 10, "stopped": 11, "busy": 12}
ENDINGS = {code: ending for ending, code in EXIT_CODES.items()}


@dataclass
class _Worker:
    plan: PlannedRun
    process: ForkServerProcess
    slot: int
    need: int  # bytes


class LocalEngine:
    """At most `workers` processes, and no more than the machine's memory has room for.

    The worker in slot i has GPU i to itself if its run asks for `cuda` or `auto`. With n GPUs,
    fewer than slots, it shares GPU i mod n.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise UserError(f"expected at least 1 worker, but got {workers}")
        self._slots = range(workers)
        self._gpus = gpus()
        self._workers: dict[str, _Worker] = {}
        self._context = multiprocessing.get_context("forkserver")

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        benchmarks = {plan.config.benchmark.name for plan in waiting}
        extra = [module for name in benchmarks for module in PRELOADED_FOR.get(name, [])]
        self._context.set_forkserver_preload(PRELOADED + extra)  # read when the server starts
        taken = {worker.slot for worker in self._workers.values()}
        free = [slot for slot in self._slots if slot not in taken]
        started: list[PlannedRun] = []
        for plan, slot in zip(waiting, free, strict=False):
            need = _need(plan)
            if not self._has_memory(need):
                break
            arguments = (Job.of(plan), self._gpu(plan, slot))
            process = self._context.Process(target=_work, args=arguments)
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
        return [self._remove(worker) for worker in gone]

    def cancel(self, plan: PlannedRun) -> None:
        self._workers[plan.name].process.terminate()

    def close(self) -> None:
        for worker in list(self._workers.values()):
            worker.process.kill()
            worker.process.join()
            self._remove(worker)

    def _remove(self, worker: _Worker) -> Ended:
        del self._workers[worker.plan.name]
        code = worker.process.exitcode
        assert code is not None
        worker.process.close()
        if code in ENDINGS:
            return Ended(worker.plan, ENDINGS[code])
        return Ended(worker.plan, None, _cause(code, worker.plan.folder))

    def _has_memory(self, need: int) -> bool:
        """Whether one more run fits when the running ones use all they need; a first one always."""
        growth = sum(
            max(0.0, w.need - resident_memory(w.process.pid)) for w in self._workers.values()
        )
        return not self._workers or need + growth <= available_memory()

    def _gpu(self, plan: PlannedRun, slot: int) -> str | None:
        if plan.config.device not in ("cuda", "auto") or not self._gpus:
            return None
        return self._gpus[slot % len(self._gpus)]


def _need(plan: PlannedRun) -> int:
    try:
        return memory_need(plan.config)
    except UserError:
        return 0  # the run itself reports the error


def _cause(code: int, folder: Path) -> str:
    """How a worker died: its signal or exit code, and the last line that it printed."""
    cause = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    if code == -signal.SIGKILL:
        cause += " (out of memory?)"
    log = folder / LOG
    lines = log.read_text(errors="replace").strip().splitlines() if log.is_file() else []
    return "; ".join([cause, *lines[-1:]])


def _work(job: Job, gpu: str | None) -> None:
    """Execute the job in the worker's process; the exit code says how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the scheduler cancels its workers
    _stop_when_orphaned()
    log = Path(job.folder) / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)  # it may be a link
    with log.open("xb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    ending = execute(job)
    sys.stdout.flush()
    if log.stat().st_size == 0:
        log.unlink()
    sys.exit(EXIT_CODES[ending])


def _stop_when_orphaned() -> None:
    """Save and stop if the parent process dies; the next sweep resumes the run."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
