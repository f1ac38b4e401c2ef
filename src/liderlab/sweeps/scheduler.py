"""The scheduler: starts and restarts runs and judges how they ended, the same on every engine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import Stopped, UserError
from ..runs.build import completed
from ..runs.folder import RunFolder
from ..runs.interruption import stop_requests
from ..runs.planned_run import PlannedRun
from .engine import Ended, Engine
from .failure_file import clear_failure, read_failure, write_failure

State = Literal["waiting", "running", "done", "failed", "stopped"]
Watch = Callable[[Mapping[str, State]], None]
"""Called several times a second with the state of every run by name."""

POLL = 0.2  # seconds
DEATHS = 3  # of its workers, until a run counts as failed: one death may have another cause
BUSY = 3.0  # seconds until a run that another process holds is tried again


@dataclass(frozen=True)
class Outcome:
    """How a run ended; its result or error is in its folder."""

    plan: PlannedRun
    state: State
    error: str | None = None


class Scheduler:
    """Keeps an engine busy.

    A run that raised an error has failed. A worker that died (killed, out of memory, its machine
    lost) is replaced, and the run resumes from its last checkpoint; after the third death the run
    has failed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[PlannedRun] = []
        self._not_before: dict[str, float] = {}
        self._running: dict[str, PlannedRun] = {}
        self._deaths: Counter[str] = Counter()
        self._cancelled: set[str] = set()

    def add(self, plan: PlannedRun) -> None:
        self._waiting.append(plan)

    @property
    def running(self) -> Sequence[PlannedRun]:
        return list(self._running.values())

    @property
    def unfinished(self) -> int:
        """How many runs are waiting or running."""
        return len(self._waiting) + len(self._running)

    def tick(self) -> list[Outcome]:
        """Start as many runs as there is room for, and return those that have ended."""
        now = time.monotonic()
        ready = [plan for plan in self._waiting if self._not_before.get(plan.name, now) <= now]
        if ready:
            self._running |= {plan.name: plan for plan in self._engine.start(ready)}
            self._waiting = [plan for plan in self._waiting if plan.name not in self._running]
        outcomes = [self._judge(end) for end in self._engine.ended(POLL)]
        return [outcome for outcome in outcomes if outcome]

    def cancel(self, plan: PlannedRun) -> None:
        """Let one run save and stop."""
        if plan.name not in self._cancelled:  # a second signal would kill a run that is saving
            self._cancelled.add(plan.name)
            self._engine.cancel(plan)

    def stop(self) -> None:
        """Start no more runs, and let the running ones save and stop."""
        self._waiting.clear()
        for plan in self.running:
            self.cancel(plan)

    def _judge(self, end: Ended) -> Outcome | None:
        """The outcome of a run whose worker has ended; None if the run is to be started again."""
        plan = self._running.pop(end.plan.name)
        if reason := another_run(plan):
            return Outcome(plan, "failed", reason)
        if RunFolder(plan.folder).finished:  # even if the worker died afterwards
            clear_failure(plan.folder)
            return Outcome(plan, "done")
        if end.ending == "failed":
            return Outcome(plan, "failed", read_failure(plan.folder))
        if end.ending == "stopped" or plan.name in self._cancelled:
            return Outcome(plan, "stopped")
        if end.ending == "busy":
            self._not_before[plan.name] = time.monotonic() + BUSY
            self._waiting.append(plan)
            return None
        self._deaths[plan.name] += 1
        if self._deaths[plan.name] < DEATHS:
            self._waiting.insert(0, plan)
            return None
        message = f"its worker died {DEATHS} times: {end.why}"
        write_failure(plan.folder, message)
        return Outcome(plan, "failed", message)


def another_run(plan: PlannedRun) -> str | None:
    """Why the run in the folder is not the planned one; None if it is, or if there is none.

    Another sweep may have begun it after this one was planned.
    """
    folder, config = RunFolder(plan.folder), plan.config
    if not folder.begun:
        return None
    try:
        if config.threads is None:
            config = config.model_copy(update={"threads": folder.config().threads})
        folder.check_same(completed(config))
    except UserError as error:
        return str(error)
    return None


def run_all(
    plans: Sequence[PlannedRun],
    *,
    workers: int = 1,
    engine: Engine | None = None,
    retry_failed: bool = False,
    watch: Watch | None = None,
    go_on: str = "the same call",
) -> list[Outcome]:
    """Execute all runs, `workers` at a time: skip finished ones, resume those that were begun.

    Runs that failed earlier stay failed unless `retry_failed`. engine: local processes by default;
    closed at the end. go_on: the command that resumes after Ctrl-C, for the message. Scripts that
    call this need `if __name__ == "__main__":`, as every script that starts processes does.
    """
    from .local_engine import LocalEngine

    engine = engine or LocalEngine(workers)
    scheduler = Scheduler(engine)
    outcomes: dict[str, Outcome] = {}
    for plan in plans:
        if reason := another_run(plan):
            outcomes[plan.name] = Outcome(plan, "failed", reason)
        elif RunFolder(plan.folder).intact:
            outcomes[plan.name] = Outcome(plan, "done")
        elif (error := read_failure(plan.folder)) is not None and not retry_failed:
            outcomes[plan.name] = Outcome(plan, "failed", error)
        else:
            scheduler.add(plan)

    def show() -> None:
        if watch:
            states: dict[str, State] = {plan.name: "waiting" for plan in plans}
            states |= {plan.name: "running" for plan in scheduler.running}
            watch(states | {name: outcome.state for name, outcome in outcomes.items()})

    try:
        with stop_requests() as request:
            show()
            while scheduler.unfinished:
                if request.signal is not None:
                    scheduler.stop()
                outcomes |= {outcome.plan.name: outcome for outcome in scheduler.tick()}
                show()
    finally:
        engine.close()
    if request.signal is not None:
        raise Stopped(request.signal, "", go_on)
    return [outcomes[plan.name] for plan in plans]
