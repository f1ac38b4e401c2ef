"""One run, from its configuration to its folder, however often it is interrupted."""

from __future__ import annotations

import io
import json
import math
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

import torch

from ..config.schema import CheckpointInterval, RunConfig
from ..distributed.launch import (
    AlreadyFinished,
    Helpers,
    Quiet,
    begin_together,
    connect,
    connected,
    open_store,
    ready,
    settle_device,
)
from ..distributed.placement import Place, find_place
from ..distributed.team import OutOfStep, RankLost, Team
from ..errors import RunFailed, Stopped, UserError
from ..memory.disk_rows import stored_bytes
from ..training.learner import NotFinite
from ..training.loop import Event, TaskDone
from ..types import State
from .build import Run, build, completed
from .folder import DamagedResult, RunFolder
from .interruption import stop_requests
from .out_of_memory import asked_for
from .provenance import check_origin
from .result import metrics_line, result_of
from .trackers import Trackers, check_installed

Listener = Callable[[Run, Event], None]
TELL_EVERY = 1.0  # seconds between two words of how far it is
RANK_PROCESS = "liderlab.runs.rank_process"  # the other ranks run it
Existing = Literal["refuse", "replace", "resume"]


def run(
    config: RunConfig,
    out: str | Path,
    *,
    existing: Existing = "refuse",
    listener: Listener | None = None,
    on_start: Callable[[Run], None] | None = None,
) -> dict[str, Any]:
    """Train and evaluate as configured, write the run's folder, return its result.

    existing: what to do with an earlier run there. "resume" goes on where its last checkpoint is,
    and the result is the same, to the bit, as if it had never stopped; a finished one is returned
    as it is. listener: is told every event. on_start: is shown the run before it begins.

    With `config.devices` above 1 this process is one of so many ranks, as torchrun or Slurm have
    started them, or it starts the others. Rank 0 alone writes, listens and reports errors.
    """
    folder, place = RunFolder(out), find_place(config.devices)
    team, kind = Team(place.rank, place.size), settle_device(config.device, place)
    with connected(team, place, kind), ExitStack() as held:
        if not team.leads:
            return _take_part(config, folder, team)
        try:
            work, state, trackers = _begin(config, folder, existing, team, held)
        except Exception as error:
            if place.outside:
                with suppress(type(error)):
                    begin_together(team, error)  # the others wait to hear of it
            if isinstance(error, AlreadyFinished):
                return folder.result()
            raise
        if on_start:
            on_start(work)
        with _taken_back(folder), deterministic(bool(work.config.deterministic)):
            helpers = None
            if team.size > 1 and not place.outside:
                helpers = held.enter_context(Helpers(place, RANK_PROCESS, _job(work, folder)))
                helpers.meet(team, place, kind)
            begin_together(team, None, _identity(work, folder))
            return _Execution(work, folder, state, trackers, listener, helpers).go()


def _begin(
    config: RunConfig, folder: RunFolder, existing: Existing, team: Team, held: ExitStack
) -> tuple[Run, State | None, Trackers]:
    """The run, ready to go, where it goes on, and its trackers; in its folder, which stays locked
    as long as it is `held`. Whatever can be refused is, before an earlier run there is touched."""
    if folder.foreign:
        raise UserError(f"{folder.path / 'config.yaml'} is not a run's: choose another --out")
    if existing == "refuse" and folder.taken:
        raise UserError(f"{folder.path} exists and is not empty: choose another --out, or --force")
    check_installed(config.tracker)
    resumed = existing == "resume" and folder.begun
    if resumed and config.threads is None:  # another number of devices is no reason for others
        config = config.model_copy(update={"threads": folder.config().threads})
    work = _build(config, folder.memory, team)  # bad input leaves nothing behind
    held.enter_context(folder.lock())
    if resumed:
        folder.check_same(work.config)
        try:
            if folder.finished:
                check_origin(folder.result(), work.origin, folder.path)
                raise AlreadyFinished
        except DamagedResult:
            folder.forget_result()
    state = folder.resumable() if resumed else None
    trackers = held.enter_context(_start_trackers(work, folder, state["steps"] if state else 0))
    if resumed:
        folder.follow(work.config)
    else:
        folder.begin(work.config)
    return work, state, trackers


def _start_trackers(work: Run, folder: RunFolder, step: int) -> Trackers:
    try:
        told = work.config.model_dump(mode="json")
        return Trackers(work.config.tracker, folder.path, told, step)
    except UserError:
        if not folder.begun:
            folder.remove()
        raise


def _build(config: RunConfig, memory: Path | None, team: Team) -> Run:
    config = completed(config)
    torch.set_num_threads(config.threads or torch.get_num_threads())
    return build(config, memory, team)


def _take_part(
    config: RunConfig, folder: RunFolder, team: Team, meet: Callable[[], None] | None = None
) -> dict[str, Any]:
    """A run that rank 0 leads, in its folder, which is only read here."""
    error, work = None, None
    try:
        work = _build(config, None, team)
    except Exception as failure:
        error = failure
    if meet:
        meet()
    begin_together(team, error, "" if work is None else _identity(work, folder))
    assert work is not None
    with deterministic(bool(work.config.deterministic)):
        return _Execution(work, folder, folder.resumable()).go()


def help_out(config: RunConfig, out: Path, rank: int, size: int, port: int) -> None:
    """Take part in a run that another process of this machine leads, and waits for at a port."""
    place, team = Place(rank, size, rank, size), Team(rank, size)
    kind = settle_device(config.device, place)

    def meet() -> None:
        store = open_store(port)
        store.set(ready(rank), "")
        connect(team, place, kind, store)

    _take_part(config, RunFolder(out), team, meet)


def _job(work: Run, folder: RunFolder) -> dict[str, Any]:
    """The options of `help_out` that the other ranks need."""
    return {"config": work.config.model_dump(mode="json"), "out": str(folder.path)}


def _identity(work: Run, folder: RunFolder) -> str:
    """What all ranks must have in common."""
    config = work.config.model_dump(mode="json", exclude={"threads"})
    return json.dumps([config, str(folder.path), work.origin], sort_keys=True, default=str)


@contextmanager
def _taken_back(folder: RunFolder) -> Iterator[None]:
    """A run that is refused after all, before anything was saved, leaves nothing behind."""
    try:
        yield
    except UserError:
        if not folder.checkpoints.files():
            folder.remove()
        raise


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Let torch refuse, rather than run, what may differ from time to time."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(wanted)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


class _Execution:
    """A run under way: its loop, its folder, its clock. Ranks but the first write nothing."""

    def __init__(
        self,
        work: Run,
        folder: RunFolder,
        state: State | None,
        trackers: Trackers | None = None,
        listener: Listener | None = None,
        helpers: Helpers | None = None,
    ) -> None:
        self._work, self._folder, self._listener = work, folder, listener
        self._team, self._helpers = work.loop.team, helpers
        self._trackers = trackers or Trackers([], folder.path, {}, 0)
        self._interval = CheckpointInterval.parse(work.config.checkpoint_every)
        self._seconds, self._logged = 0.0, 0
        self._cpu: float | None = 0.0
        if state is not None:
            check_origin(state.pop("origin", {}), work.origin, folder.path)
            self._seconds, self._logged = state.pop("seconds"), state.pop("logged")
            self._cpu = state.pop("seconds_cpu", None)  # older versions did not count: unknown
            work.loop.evaluating = state.pop("seconds_evaluating", work.loop.evaluating)
            if not self._team.leads:
                _read_rows(state, folder)
            with folder.consistent():
                work.loop.load_state_dict(state)
            if self._team.leads:
                work.loop.memory.checkpointed(state["steps"], folder.checkpoints.oldest())
        self._started = self._saved_at = time.monotonic()
        self._cpu_before = time.process_time()
        self._saved_steps = work.loop.steps
        self._planned, self._told_at = 0, -math.inf

    def go(self) -> dict[str, Any]:
        """To the end; whatever stops it, the last checkpoint is whole."""
        try:
            self._team.check_same("the checkpoint", self._work.loop.steps)
            return self._go()
        except (Stopped, NotFinite, OutOfStep) as error:  # which happens to all ranks alike
            if not self._team.leads:
                raise Quiet(error.exit_code if isinstance(error, Stopped) else 1) from None
            if isinstance(error, Stopped):
                raise
            raise RunFailed(self._why(error)) from None
        except RankLost:
            if self._helpers is None and not self._team.leads:
                raise
            raise RunFailed(f"{self._who()}; {self._saved()}") from None
        except OSError as error:
            raise RunFailed(f"cannot write: {error.strerror or error}; {self._saved()}") from None
        except (RuntimeError, MemoryError) as error:
            if (size := asked_for(error)) is None:
                raise
            raise RunFailed(
                f"there is not enough memory: {size} were asked for; {self._saved()}"
            ) from None

    def _why(self, error: NotFinite | OutOfStep) -> str:
        if isinstance(error, OutOfStep):
            return f"{error}; {self._saved()}"
        return (
            f"{error}, and will be again if it is resumed as it is: leave such steps out, with "
            f"{self._resume_it} --on-nonfinite skip, or start with a smaller --lr and another --out"
        )

    def _who(self) -> str:
        """Which rank does not answer; its connections may be gone a moment before it is."""
        for _ in range(20):
            if self._helpers and (gone := self._helpers.gone()):
                return gone
            time.sleep(0.1)
        return "another rank has ended, or does not answer"

    @property
    def _resume_it(self) -> str:
        return shlex.join(["lider", "resume", str(self._folder.path)])

    def _saved(self) -> str:
        how = self._resume_it
        if self._folder.checkpoints.files():
            return f"the last checkpoint is intact: {how}"
        return f"nothing was saved yet: {how} starts from the beginning"

    def _go(self) -> dict[str, Any]:
        leads = self._team.leads
        with (
            stop_requests() as request,
            self._folder.open_metrics(self._logged) if leads else io.BytesIO() as metrics,
        ):
            for event in self._work.loop:
                if leads:
                    self._tell_of(event, metrics)
                # looked at once, and agreed upon: what is saved is what is said
                stop, due = self._team.agree(request.signal or 0, leads and self._due())
                if isinstance(event, TaskDone) or stop or due:
                    self._save(metrics)
                if stop:
                    raise Stopped(stop, str(self._folder.path))
            result = result_of(self._work, self._elapsed(), self._used())
            if leads:
                self._folder.write_result(result)
                self._trackers.finish(self._work.loop.steps, result)
        return result

    def _tell_of(self, event: Event, metrics: IO[bytes]) -> None:
        self._log(event, metrics)
        if self._listener:
            self._listener(self._work, event)
        if isinstance(event, TaskDone) and self._work.config.keep_tasks:
            self._keep(event)

    def _log(self, event: Event, metrics: IO[bytes]) -> None:
        if line := metrics_line(self._work, event):
            metrics.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            self._trackers.log(line)
            metrics.flush()  # somebody may be watching
        if isinstance(event, TaskDone) or time.monotonic() - self._told_at > TELL_EVERY:
            self._tell()

    def _tell(self) -> None:
        loop = self._work.loop
        self._planned = max(self._planned or loop.planned_steps(), loop.steps)
        seconds = round(self._elapsed(), 1)
        progress = {"step": loop.steps, "planned": self._planned, "seconds": seconds}
        self._folder.write_progress(progress)
        self._told_at = time.monotonic()

    def _due(self) -> bool:
        return self._interval.due(
            self._work.loop.steps - self._saved_steps, time.monotonic() - self._saved_at
        )

    def _save(self, metrics: IO[bytes]) -> None:
        if not self._team.leads:
            self._work.loop.check()
            return
        metrics.flush()
        os.fsync(metrics.fileno())  # before the checkpoint, which says how long it is
        state = self._work.loop.state_dict()
        logged, seconds = metrics.tell(), self._elapsed()
        state |= {"logged": logged, "seconds": seconds, "seconds_cpu": self._used()}
        state |= {"seconds_evaluating": self._work.loop.evaluating, "origin": self._work.origin}
        self._folder.checkpoints.write(state)
        self._work.loop.memory.checkpointed(state["steps"], self._folder.checkpoints.oldest())
        self._saved_at, self._saved_steps = time.monotonic(), self._work.loop.steps

    def _keep(self, event: TaskDone) -> None:
        """Before the checkpoint that says the task is done: a kill in between only repeats it."""
        loop = self._work.loop
        state = {"network": loop.network.state_dict(), "method": loop.method.state_dict()}
        self._folder.keep_task(event.task.index, state)

    def _elapsed(self) -> float:
        return self._seconds + time.monotonic() - self._started

    def _used(self) -> float | None:
        """CPU seconds, of all threads: what it costs where others work on the same machine."""
        return None if self._cpu is None else self._cpu + time.process_time() - self._cpu_before


def _read_rows(state: State, folder: RunFolder) -> None:
    """Images that rank 0 has on the disk, in the place of where they are: the files are its own."""
    columns = state["memory"]["data"]
    for name, column in columns.items():
        if isinstance(column, Mapping):
            columns[name] = stored_bytes(folder.memory / f"{name}.rows", column)
