"""Which run is next, which is started again, and what became of each: the same on any engine."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import Stopped
from ..runs.folder import RunFolder
from ..runs.interruption import stop_requests
from ..runs.planned_run import PlannedRun
from .engine import Ended, Engine
from .failure_file import clear_failure, read_failure, write_failure

State = Literal["waiting", "running", "done", "failed", "stopped"]
Watch = Callable[[Mapping[str, State]], None]
"""Is told the state of every plan by name, several times a second."""

POLL = 0.2  # seconds
DEATHS = 3  # a worker that dies is no fault of the run's, unless it happens again and again
BUSY = 3.0  # seconds until we look again at a run that another process has taken


@dataclass(frozen=True)
class Outcome:
    """What became of a plan; its result, or its error, is in its folder."""

    plan: PlannedRun
    state: State
    error: str | None = None


class Scheduler:
    """Keeps an engine busy.

    A run that raised an error has failed. A worker that died (killed, out of memory, its machine
    gone) is replaced: the run goes on from its last checkpoint, until it has died three times.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: deque[PlannedRun] = deque()
        self._busy: list[tuple[float, PlannedRun]] = []
        self._running: dict[str, PlannedRun] = {}
        self._deaths: Counter[str] = Counter()
        self._stopping = False

    def add(self, plan: PlannedRun) -> None:
        self._waiting.append(plan)

    @property
    def running(self) -> Sequence[PlannedRun]:
        return list(self._running.values())

    @property
    def unfinished(self) -> int:
        """How many plans are waiting or running."""
        return len(self._waiting) + len(self._busy) + len(self._running)

    def tick(self) -> list[Outcome]:
        """Start what there is room for, and see what has ended."""
        now = time.monotonic()
        self._waiting.extend(plan for due, plan in self._busy if due <= now)
        self._busy = [(due, plan) for due, plan in self._busy if due > now]
        if self._waiting:
            for plan in self._engine.start(tuple(self._waiting)):
                self._waiting.remove(plan)
                self._running[plan.name] = plan
        outcomes = [self._judge(end) for end in self._engine.ended(POLL)]
        return [outcome for outcome in outcomes if outcome]

    def cancel(self, plan: PlannedRun) -> None:
        """Let one run save and stop."""
        self._engine.cancel(plan)

    def stop(self) -> None:
        """Start nothing more; let all runs save and stop."""
        self._stopping = True
        self._waiting.clear()
        self._busy.clear()
        for plan in self.running:
            self._engine.cancel(plan)

    def _judge(self, end: Ended) -> Outcome | None:
        plan = self._running.pop(end.plan.name)
        if RunFolder(plan.folder).finished:  # whatever happened to the worker after that
            clear_failure(plan.folder)
            return Outcome(plan, "done")
        if end.ending == "failed":
            return Outcome(plan, "failed", read_failure(plan.folder))
        if self._stopping or end.ending == "stopped":
            return Outcome(plan, "stopped")
        if end.ending == "busy":
            self._busy.append((time.monotonic() + BUSY, plan))
            return None
        self._deaths[plan.name] += 1
        if self._deaths[plan.name] < DEATHS:
            self._waiting.appendleft(plan)
            return None
        message = f"its worker died {DEATHS} times: {end.why}"
        write_failure(plan.folder, message)
        return Outcome(plan, "failed", message)


def run_all(
    plans: Sequence[PlannedRun],
    *,
    workers: int = 1,
    engine: Engine | None = None,
    retry_failed: bool = False,
    watch: Watch | None = None,
    go_on: str = "the same call",
) -> list[Outcome]:
    """Run all plans, `workers` at a time; skip what has finished, go on with what was begun.

    Runs that failed earlier stay failed unless `retry_failed`. engine: local processes by default,
    closed at the end. go_on: the command that takes it up again after Ctrl-C, for the message.
    Scripts that call this need `if __name__ == "__main__":`, as for any use of processes.
    """
    from .local_engine import LocalEngine

    engine = engine or LocalEngine(workers)
    scheduler = Scheduler(engine)
    found: dict[str, Outcome] = {}
    for plan in plans:
        if RunFolder(plan.folder).intact:
            found[plan.name] = Outcome(plan, "done")
        elif (error := read_failure(plan.folder)) is not None and not retry_failed:
            found[plan.name] = Outcome(plan, "failed", error)
        else:
            scheduler.add(plan)
    try:
        with stop_requests() as request:
            _drive(scheduler, plans, found, lambda: request.signal is not None, watch)
    finally:
        engine.close()
    if request.signal is not None:
        raise Stopped(request.signal, "", go_on)
    return [found[plan.name] for plan in plans]


def _drive(
    scheduler: Scheduler,
    plans: Sequence[PlannedRun],
    found: dict[str, Outcome],
    asked_to_stop: Callable[[], bool],
    watch: Watch | None,
) -> None:
    stopping = False
    while scheduler.unfinished:
        if asked_to_stop() and not stopping:
            stopping = True
            scheduler.stop()
        for outcome in scheduler.tick():
            found[outcome.plan.name] = outcome
        if watch:
            watch(states(plans, found, scheduler))
    if watch:
        watch(states(plans, found, scheduler))


def states(
    plans: Sequence[PlannedRun], found: Mapping[str, Outcome], scheduler: Scheduler
) -> dict[str, State]:
    running = {plan.name for plan in scheduler.running}
    return {
        plan.name: found[plan.name].state
        if plan.name in found
        else ("running" if plan.name in running else "waiting")
        for plan in plans
    }
