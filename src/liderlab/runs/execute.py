"""One run, from its configuration to its result, however often it is interrupted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal

import torch

from ..config.identity import identity
from ..config.schema import RunConfig
from ..distributed.launch import (
    AlreadyFinished,
    RankProcesses,
    SilentExit,
    begin_together,
    choose_device,
    connected,
    rank_processes,
)
from ..distributed.placement import find_placement
from ..distributed.team import OutOfStep, RankLost, Team
from ..errors import RunFailed, Stopped, UserError
from ..training.eager_calls import set_deterministic
from ..training.events import TaskDone
from ..training.learner import NotFinite
from ..types import State
from .build import Run, build, completed
from .extension import continue_from
from .folder import Busy, DamagedResult, RunFolder
from .interruption import stop_requests
from .out_of_memory import asked_for
from .provenance import changed_fields, changed_imports, check_origin
from .recorder import Listener, Recorder
from .trackers import Trackers, check_installed

Existing = Literal["refuse", "replace", "resume"]
RANK_PROCESS = "liderlab.runs.rank_process"  # the module that the other ranks run


def run(
    config: RunConfig,
    out: str | Path,
    *,
    existing: Existing = "refuse",
    allow_changed_imports: bool = False,
    listener: Listener | None = None,
    on_start: Callable[[Run], None] | None = None,
) -> dict[str, Any]:
    """Train and evaluate as configured, write the run's folder, return its result.

    existing: what to do with an earlier run in the folder. "resume" continues from its last
    checkpoint, and the result equals that of an uninterrupted run, to the bit; the result of a
    finished run is returned. allow_changed_imports: resume although the imported files have
    changed. listener: called with every event. on_start: called before training.

    With `config.devices` = n > 1 this process is one of n ranks, which torchrun, Slurm or rank 0
    has started. Rank 0 alone writes, calls the listener and reports errors.
    """
    folder, placement = RunFolder(out), find_placement(config.devices)
    team, device = Team(placement.rank, placement.size), choose_device(config.device, placement)
    with connected(team, placement, device), ExitStack() as held:
        if not team.leads:
            return take_part(config, folder, team)
        try:
            work, state, trackers = _begin(
                config, folder, existing, allow_changed_imports, team, held
            )
        except Exception as error:
            if placement.external:  # the other ranks are waiting to begin
                with suppress(type(error)):
                    begin_together(team, error)
            if isinstance(error, AlreadyFinished):
                return folder.result()
            raise
        if on_start:
            on_start(work)
        with _removed_if_refused(folder), deterministic(bool(work.config.deterministic)):
            others = None
            if team.size > 1 and not placement.external:
                job = {"config": work.config.model_dump(mode="json"), "out": str(folder.path)}
                others = held.enter_context(rank_processes(team.size, RANK_PROCESS, job))
                others.meet(team, placement, device)
            begin_together(team, None, _identity(work, folder))
            _restore(work, folder, state)
            recorder = Recorder(work, folder, state, trackers, listener)
            with _failures_explained(folder, team, others):
                return _train(work, folder, recorder)


def _begin(
    config: RunConfig,
    folder: RunFolder,
    existing: Existing,
    allow_changed_imports: bool,
    team: Team,
    held: ExitStack,
) -> tuple[Run, State | None, Trackers]:
    """Build the run, lock its folder while `held`, find its checkpoint, and start its trackers.

    Bad input is refused before an earlier run in the folder is touched.
    """
    if folder.foreign:
        raise UserError(
            f"{folder.path / 'config.yaml'} does not belong to a run: choose another --out"
        )
    if existing == "refuse" and folder.occupied:
        raise UserError(f"{folder.path} exists and is not empty: choose another --out, or --force")
    check_installed(config.tracker)
    resumed = existing == "resume" and folder.begun
    if resumed and config.threads is None:  # keep the number, also on more or fewer devices
        config = config.model_copy(update={"threads": folder.config().threads})
    work = _build(config, folder.memory, team)
    held.enter_context(folder.lock())
    if folder.occupied if existing == "refuse" else existing == "resume" and folder.begun > resumed:
        raise Busy(f"another process has just begun a run in {folder.path}: try again")
    state = _find_checkpoint(work, folder, allow_changed_imports) if resumed else None
    trackers = held.enter_context(_start_trackers(work, folder, state["steps"] if state else 0))
    if resumed:
        folder.update_config(work.config)
    else:
        folder.begin(work.config)
    return work, state, trackers


def _build(config: RunConfig, memory: Path | None, team: Team) -> Run:
    config = completed(config)
    torch.set_num_threads(config.threads or torch.get_num_threads())
    return build(config, memory, team)


def _find_checkpoint(work: Run, folder: RunFolder, allow_changed_imports: bool) -> State | None:
    """The checkpoint to resume from, if there is one yet; refuses another run's folder."""
    folder.check_same(work.config)
    if folder.finished:
        try:
            check_origin(folder.result(), work.origin, folder.path, allow_changed_imports)
            raise AlreadyFinished
        except DamagedResult:
            folder.delete_result()
    state = folder.resume_state()
    if state is not None:
        with folder.consistent():
            folder.check_same(work.config, state)
            check_origin(state.get("origin", {}), work.origin, folder.path, allow_changed_imports)
    return state


def _start_trackers(work: Run, folder: RunFolder, step: int) -> Trackers:
    try:
        config = work.config.model_dump(mode="json")
        return Trackers(work.config.tracker, folder.path, config, step, work.stream.setting)
    except UserError:
        if not folder.begun:
            folder.remove()
        raise


def take_part(
    config: RunConfig, folder: RunFolder, team: Team, meet: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Train as a rank other than 0, which reads the folder and writes nothing.

    meet: connects to the other ranks.
    """
    error, work = None, None
    try:
        work = _build(config, None, team)
    except Exception as failure:
        error = failure
    meet()
    begin_together(team, error, "" if work is None else _identity(work, folder))
    assert work is not None
    with deterministic(bool(work.config.deterministic)):
        _restore(work, folder, folder.resume_state())
        with _failures_explained(folder, team):
            return _train(work, folder, None)


def _identity(work: Run, folder: RunFolder) -> str:
    """Configuration, folder and origin as one text, which must be the same on all ranks."""
    config = identity(work.config, "processes")
    return json.dumps([config, str(folder.path), work.origin], sort_keys=True, default=str)


def _restore(work: Run, folder: RunFolder, state: State | None) -> None:
    """Load the checkpoint into the run, if there is one."""
    if state is None:
        if work.config.extends:
            continue_from(work)
        return
    before, loop = state.get("origin", {}), work.loop
    with folder.consistent():
        if "extends" in before:
            work.origin["extends"] = before["extends"]
        if earlier := before.get("imports_before", []) + changed_imports(before, work.origin):
            work.origin["imports_before"] = earlier
        if earlier := before.get("config_before", []) + changed_fields(state, work.config):
            work.origin["config_before"] = earlier
        seconds = state.get("seconds_evaluating", loop.evaluating)
        pairs = zip(seconds, work.stream.tasks, strict=True)  # one number for each task
        loop.evaluating = [float(number) for number, _ in pairs]
        loop.cost.seconds = state.get("seconds_training") or 0.0
        # rank 0 alone uses the files of a memory on disk; other ranks load its images
        loop.load_state_dict(state if loop.team.leads else folder.read_memory(state))
    if loop.team.leads:
        loop.memory.checkpointed(state["steps"], folder.checkpoints.oldest())


def _train(work: Run, folder: RunFolder, recorder: Recorder | None) -> dict[str, Any]:
    """Train to the end; all ranks agree when to write a checkpoint and when to stop.

    recorder: None on all ranks but 0.
    """
    loop, team = work.loop, work.loop.team
    team.check_same("the checkpoint", loop.steps)
    with stop_requests() as request, recorder or nullcontext():
        for event in loop:
            if recorder:
                recorder.record(event)
            stop, due = team.agree(request.signal or 0, recorder is not None and recorder.due())
            if isinstance(event, TaskDone) or stop or due:
                if recorder:
                    recorder.save()
                else:
                    loop.check()
            if stop:
                raise Stopped(stop, str(folder.path))
        result: dict[str, Any] = team.gather_objects(recorder and recorder.finish())[0]
    return result


@contextmanager
def _failures_explained(
    folder: RunFolder, team: Team, others: RankProcesses | None = None
) -> Iterator[None]:
    """Turn an error of training into one sentence that says whether there is a checkpoint."""
    resume = shlex.join(["lider", "resume", str(folder.path)])

    def failed(reason: str) -> RunFailed:
        if not folder.begun:
            return RunFailed(f"{reason}; {folder.path} was deleted, and the run with it")
        if folder.checkpoints.files():
            return RunFailed(f"{reason}; the last checkpoint is intact: {resume}")
        return RunFailed(f"{reason}; nothing was saved yet: {resume} starts from the beginning")

    try:
        yield
    except (Stopped, NotFinite, OutOfStep) as error:  # all ranks raise it, rank 0 reports it
        if not team.leads:
            raise SilentExit(error.exit_code if isinstance(error, Stopped) else 1) from None
        if isinstance(error, Stopped):
            raise
        if isinstance(error, OutOfStep):
            raise failed(str(error)) from None
        raise RunFailed(
            f"{error}, and would be again after resuming without a change: skip such steps with "
            f"{resume} --on-nonfinite skip, or start with a smaller --lr and another --out"
        ) from None
    except RankLost:
        if not team.leads:
            raise
        lost = others.lost_rank() if others else None
        raise failed(lost or "another rank has ended, or does not answer") from None
    except OSError as error:
        raise failed(f"cannot write: {error.strerror or error}") from None
    except (RuntimeError, MemoryError) as error:
        if (size := asked_for(error)) is None:
            raise
        raise failed(f"there is not enough memory: {size} were asked for") from None


@contextmanager
def _removed_if_refused(folder: RunFolder) -> Iterator[None]:
    """Delete the run's files if it is refused before its first checkpoint."""
    try:
        yield
    except UserError:
        if not folder.checkpoints.files():
            folder.remove()
        raise


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Let torch refuse operations whose result may differ from call to call.

    torch would also fill every new tensor with NaN before it is computed, to show reads of
    uninitialised memory. That takes a tenth of a narrow network's step and changes no result.
    """
    debugging: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), debugging.fill_uninitialized_memory
    set_deterministic(wanted)
    debugging.fill_uninitialized_memory = False
    try:
        yield
    finally:
        set_deterministic(before[0])
        debugging.fill_uninitialized_memory = before[1]
