"""The ranks of a run: start, connect, watch and end them.

Rank 0 is the process of the command. It starts the other ranks (`rank_processes`) once the input
has been checked, unless torchrun or Slurm has started all ranks. The backend is gloo between CPUs,
nccl between GPUs.

The network has no DDP wrapper: DDP would leave out LiDER's targets, does not support
`autograd.grad` (GMED), needs one forward pass per backward pass, and multiplies the batch. The
learner sums the gradients instead, weighted by rows.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ..errors import RunFailed, Stopped, UserError
from .placement import Placement
from .team import Team

TIMEOUT = timedelta(minutes=30)  # for a rank that neither answers nor ends
GRACE = 10.0  # seconds for a process to end by itself
HOST = "127.0.0.1"


class SilentExit(SystemExit):
    """End this rank without a message: rank 0 prints the reason."""


class AlreadyFinished(Exception):
    """The folder holds a finished run."""

    def __init__(self) -> None:
        super().__init__("the run has finished")


def choose_device(device: str, placement: Placement) -> str:
    """Return "cuda", if every rank has a GPU, or "cpu"; refuse too few GPUs.

    >>> choose_device("cpu", Placement(size=2, local_size=2))
    'cpu'
    """
    if placement.size == 1 or device == "cpu":
        return "cpu"
    if device not in ("cuda", "auto"):
        raise UserError(
            f"a run on {placement.size} devices needs --device cuda or --device cpu, not {device}"
        )
    found = torch.cuda.device_count()
    if device == "auto" and not found:
        return "cpu"
    if found < placement.local_size:
        raise UserError(
            f"{placement.local_size} ranks on this machine need a GPU each, but this process sees "
            f"{found}: lower --devices, or choose --device cpu"
        )
    torch.cuda.set_device(placement.local_rank)
    return "cuda"


def open_store(port: int | None = None) -> Any:
    """The store through which the ranks of one machine connect.

    Rank 0 opens it, at a port that the system chooses; the other ranks pass that port.
    """
    return dist.TCPStore(  # type: ignore[attr-defined]
        HOST, port or 0, None, port is None, TIMEOUT, wait_for_workers=False
    )


def connect(team: Team, placement: Placement, kind: str, store: Any = None) -> None:
    """Connect to the other ranks: through the store, or at the address of torchrun or Slurm.

    kind: "cpu" or "cuda".
    """
    where: dict[str, Any] = {"init_method": placement.init_method}
    if store is not None:  # it keeps its port, which no other process can take
        where = {"store": dist.PrefixStore("run", store)}  # type: ignore[attr-defined]
    backend = "nccl" if kind == "cuda" else "gloo"
    try:
        dist.init_process_group(
            backend, rank=placement.rank, world_size=placement.size, timeout=TIMEOUT, **where
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(f"the ranks cannot connect: {str(error).splitlines()[0]}") from None
    if backend != "gloo":
        team.control = dist.new_group(backend="gloo", timeout=TIMEOUT)


@contextmanager
def connected(team: Team, placement: Placement, kind: str) -> Iterator[None]:
    """Connect ranks that torchrun or Slurm has started, for the duration of the block."""
    if placement.external:
        connect(team, placement, kind)
    try:
        yield
    finally:
        if placement.external and dist.is_initialized():
            dist.destroy_process_group()


def begin_together(team: Team, error: Exception | None, identity: str = "") -> None:
    """Let all ranks begin or none: after an error on any, rank 0 raises it and the rest exit.

    identity: of the run; must be the same on all ranks.
    """
    answers = team.gather_objects((None if error is None else str(error), identity))
    if team.leads and error is not None:
        raise error
    errors = {rank: text for rank, (text, _) in enumerate(answers) if text is not None}
    if not errors and len({identity for _, identity in answers}) == 1:
        return
    if not team.leads:
        raise SilentExit(0 if errors.get(0) == str(AlreadyFinished()) else 2)
    for rank, text in errors.items():
        raise UserError(
            f"rank {rank} cannot begin: {text} (if a script defines the method or benchmark, name "
            "its file in `imports` or start it with torchrun, so that all ranks know it)"
        )
    raise UserError(
        "these processes do not have the same options, --out, data and weights: start all of them "
        "alike, or start independent runs with --devices 1"
    )


@contextmanager
def rank_processes(size: int, module: str, job: Mapping[str, Any]) -> Iterator[RankProcesses]:
    """Start the processes of ranks 1 … size − 1, and wait for their end; kill them after an error.

    module: run by each process, with its rank as argument and `job` as JSON on standard input.
    """
    store, processes = open_store(), list[subprocess.Popen[bytes]]()
    message = json.dumps({**job, "size": size, "port": store.port, "parent": os.getpid()}).encode()
    try:
        for rank in range(1, size):
            command = [sys.executable, "-m", module, str(rank)]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            processes.append(process)
            assert process.stdin is not None
            with suppress(OSError):  # it has ended already: `ended_rank` says so
                process.stdin.write(message)
                process.stdin.close()
        yield RankProcesses(processes, store)
    except Stopped:
        raise
    except BaseException:
        for process in processes:
            process.kill()
        raise
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
        deadline = time.monotonic() + GRACE
        for process in processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class RankProcesses:
    """The processes of ranks 1, 2, …; each reports in `store` that it is ready."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]], store: Any) -> None:
        self._processes, self._store = processes, store

    def meet(self, team: Team, placement: Placement, kind: str) -> None:
        """Wait until all ranks are ready, and connect."""
        missing = set(range(1, len(self._processes) + 1))
        while missing:
            if ended := self.ended_rank():
                raise RunFailed(f"{ended} before the run began")
            missing -= {rank for rank in missing if self._store.check([ready_key(rank)])}
            time.sleep(0.02)
        connect(team, placement, kind, self._store)

    def ended_rank(self) -> str | None:
        """Which rank has failed, and how."""
        for rank, process in enumerate(self._processes, 1):
            if code := process.poll():
                how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                return f"rank {rank} has ended ({how})"
        return None

    def lost_rank(self) -> str | None:
        """As `ended_rank`; waits a moment, as a process closes its connections before it ends."""
        deadline = time.monotonic() + 2
        while (ended := self.ended_rank()) is None and time.monotonic() < deadline:
            time.sleep(0.1)
        return ended


def ready_key(rank: int) -> str:
    """The key that a rank sets in the store when it is ready to connect."""
    return f"rank {rank} is ready"


def describe_ranks(team: Team, strategy: str) -> dict[str, Any]:
    """The entry `parallel` of result.json."""
    return {"devices": team.size, "strategy": strategy, "backend": dist.get_backend()}
