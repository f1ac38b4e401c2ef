"""The ranks of a run: started, connected, watched, and ended together.

Rank 0 is the process that was asked for the run. It starts the others (`Helpers`) once everything
has been checked, unless torchrun or Slurm has started all of them. Fabric finds out about devices,
backend (gloo between CPUs, nccl between GPUs) and who meets where.

There is no DDP wrapper around the network. It would leave out LiDER's targets, does not know of
`autograd.grad` (GMED), wants one forward pass per backward pass, and multiplies the batch; the
learner adds the gradients up instead, weighted by rows.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist

from ..errors import RunFailed, Stopped, UserError
from .placement import Place
from .team import Team

TIMEOUT = timedelta(minutes=30)  # for a rank that neither answers nor ends
GRACE = 10.0  # seconds in which a helper ends by itself
HOST = "127.0.0.1"


class Quiet(SystemExit):
    """This rank ends without a word: rank 0 has said why."""


class AlreadyFinished(Exception):
    """There is nothing left to do in this folder."""

    def __init__(self) -> None:
        super().__init__("the run has finished")


def settle_device(device: str, place: Place) -> str:
    """The kind of device that the ranks compute on: a GPU for each, refused if there are too few.

    >>> settle_device("cpu", Place(size=2, local_size=2))
    'cpu'
    """
    if place.size == 1 or device == "cpu":
        return "cpu"
    if device not in ("cuda", "auto"):
        raise UserError(
            f"a run on {place.size} devices is on --device cuda or --device cpu, not {device}"
        )
    found = torch.cuda.device_count()
    if device == "auto" and not found:
        return "cpu"
    if found < place.local_size:
        raise UserError(
            f"{place.local_size} devices were asked for, and this process sees {found} GPUs: "
            "--devices with their number, or --device cpu"
        )
    torch.cuda.set_device(place.local_rank)
    return "cuda"


def open_store(port: int | None = None) -> Any:
    """What the ranks of one machine meet in: opened by rank 0, at a port that the system chooses,
    and found there by the others."""
    return dist.TCPStore(  # type: ignore[attr-defined]
        HOST, port or 0, None, port is None, TIMEOUT, wait_for_workers=False
    )


def connect(team: Team, place: Place, kind: str, store: Any = None) -> None:
    """Meet the other ranks: in the store, or where torchrun or Slurm say.

    kind: of their devices, "cpu" or "cuda".
    """
    from lightning_fabric.fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy

    class Here(LightningEnvironment):
        """Processes that are there already, on this machine."""

        creates_processes_externally = True

        def local_rank(self) -> int:
            return place.local_rank

    for name in ("lightning_fabric", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    known = {"torchrun": TorchElasticEnvironment, "slurm": SLURMEnvironment, "here": Here}
    if store is not None:  # the system has chosen its port: none can be taken in the meantime
        backend = "nccl" if kind == "cuda" else "gloo"
        own = dist.PrefixStore("run", store)  # type: ignore[attr-defined]
        dist.init_process_group(
            backend, store=own, rank=place.rank, world_size=place.size, timeout=TIMEOUT
        )
    try:
        fabric = Fabric(
            accelerator=kind,
            devices=place.local_size,
            num_nodes=place.size // place.local_size,
            strategy=DDPStrategy(cluster_environment=known[place.launcher](), timeout=TIMEOUT),
        )
        with _unchanged():
            fabric.launch()
    except (RuntimeError, ValueError) as error:  # a launcher's settings that do not fit together
        raise UserError(f"the processes cannot meet: {str(error).splitlines()[0]}") from None
    if dist.get_backend() != "gloo":
        team.control = dist.new_group(backend="gloo", timeout=TIMEOUT)


@contextmanager
def _unchanged() -> Iterator[None]:
    """Fabric sets the number of threads, which is the run's own business, and variables that would
    reach whatever this process starts later."""
    before, threads = dict(os.environ), torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def connected(team: Team, place: Place, kind: str) -> Iterator[None]:
    """Ranks that somebody else has started are together as long as this lasts."""
    if place.outside:
        connect(team, place, kind)
    try:
        yield
    finally:
        if place.outside and dist.is_initialized():
            dist.destroy_process_group()


def begin_together(team: Team, error: Exception | None, what: str = "") -> None:
    """All ranks begin, or none: rank 0 raises whatever keeps any of them from it.

    what: must be the same for all, or they are not here for the same run.
    """
    words = team.tell((None if error is None else str(error), what))
    if team.leads and error is not None:
        raise error
    wrong = {rank: text for rank, (text, _) in enumerate(words) if text is not None}
    if not wrong and len({what for _, what in words}) == 1:
        return
    if not team.leads:
        raise Quiet(0 if wrong.get(0) == str(AlreadyFinished()) else 2)
    for rank, text in wrong.items():
        raise UserError(
            f"rank {rank} cannot begin: {text} (a method or benchmark that a script defines is "
            "known to all ranks if torchrun starts the script)"
        )
    raise UserError(
        "these processes do not have the same options, --out, data and weights: start all of them "
        "alike, or every run by itself with --devices 1"
    )


class Helpers:
    """The other ranks, started by this process; a context that ends when they have ended.

    module: each of them runs it, with its rank as argument, and reads the job from standard input.
    """

    def __init__(self, place: Place, module: str, job: Mapping[str, Any]) -> None:
        self._store, self._module = open_store(), module
        job = {**job, "size": place.size, "port": self._store.port, "parent": os.getpid()}
        self._job = json.dumps(job).encode()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._size = place.size

    def __enter__(self) -> Helpers:
        try:
            for rank in range(1, self._size):
                command = [sys.executable, "-m", self._module, str(rank)]
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
                )
                self._processes.append(process)
                assert process.stdin is not None
                with suppress(OSError):  # it has ended already: `gone` will say so
                    process.stdin.write(self._job)
                    process.stdin.close()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def meet(self, team: Team, place: Place, kind: str) -> None:
        """Wait until all of them stand ready, and connect."""
        missing = set(range(1, self._size))
        while missing:
            if gone := self.gone():
                raise RunFailed(f"{gone} before the run began")
            missing -= {rank for rank in missing if self._store.check([ready(rank)])}
            time.sleep(0.02)
        connect(team, place, kind, self._store)

    def lost_rank(self) -> str | None:
        """As `gone`; waits a moment, as a process closes its connections before it ends."""
        for _ in range(20):
            if gone := self.gone():
                return gone
            time.sleep(0.1)
        return None

    def gone(self) -> str | None:
        """Which rank has ended, and how."""
        for rank, process in enumerate(self._processes, 1):
            if code := process.poll():
                how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                return f"rank {rank} has ended ({how})"
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """They end by themselves when the run does; nothing they do is of use after an error."""
        if kind is not None and not issubclass(kind, Stopped):
            for process in self._processes:
                process.kill()
        if dist.is_initialized():
            dist.destroy_process_group()
        deadline = time.monotonic() + GRACE
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes = []


def ready(rank: int) -> str:
    return f"rank {rank} stands ready"


def described(team: Team, strategy: str) -> dict[str, Any]:
    """What result.json says about the ranks."""
    return {"devices": team.size, "strategy": strategy, "backend": dist.get_backend()}
