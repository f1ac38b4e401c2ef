"""The position of this process among the ranks of a run. Needs no torch."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal

from ..errors import UserError


@dataclass(frozen=True)
class Placement:
    """Rank of a process and number of ranks, in the run and on its machine (local).

    launcher: the program that started the ranks; "here": rank 0 starts the other ranks itself.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    launcher: Literal["here", "torchrun", "slurm"] = "here"

    @property
    def leads(self) -> bool:
        return self.rank == 0

    @property
    def external(self) -> bool:
        """Whether torchrun or Slurm has started all processes."""
        return self.launcher != "here"

    @property
    def init_method(self) -> str:
        """The address at which an external launcher's ranks connect, for `init_process_group`."""
        return slurm_address() if self.launcher == "slurm" else "env://"


def torchrun() -> Placement | None:
    """The placement by torchrun, if it started this process."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    local_rank, local_size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    return Placement(rank, size, local_rank, local_size, "torchrun")


def torchrun_size() -> int | None:
    """The number of processes that torchrun has started for one run; None without torchrun.

    Slurm may also start independent runs: there, --devices decides.
    """
    placement = torchrun()
    return None if placement is None else placement.size


def slurm() -> Placement | None:
    """The placement by srun, if it started several processes."""
    size = int(os.environ.get("SLURM_STEP_NUM_TASKS", "1"))
    if size == 1:
        return None
    nodes = int(os.environ.get("SLURM_STEP_NUM_NODES", "1"))
    if size % nodes:
        raise UserError(f"{size} tasks on {nodes} nodes: choose a multiple of {nodes} with srun -n")
    rank, local_rank = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_LOCALID"])
    return Placement(rank, size, local_rank, size // nodes, "slurm")


def slurm_address() -> str:
    """MASTER_ADDR and MASTER_PORT; by default the job's first node and a port from the job's id."""
    nodes = os.environ.get("SLURM_NODELIST", "127.0.0.1")
    first = re.sub(r"\[([^],-]*).*", r"\1", nodes).split(",")[0]
    port = 15000 + int(os.environ.get("SLURM_JOB_ID", "0")[-4:])
    return f"tcp://{os.environ.get('MASTER_ADDR', first)}:{os.environ.get('MASTER_PORT', port)}"


def local_ranks(devices: int) -> int:
    """How many of the ranks are on this machine."""
    return find_placement(devices).local_size


def find_placement(devices: int) -> Placement:
    """The placement of this process in a run on `devices` devices.

    >>> find_placement(1)
    Placement(rank=0, size=1, local_rank=0, local_size=1, launcher='here')
    """
    if devices == 1:
        return Placement()
    placement = torchrun() or slurm() or Placement(0, devices, 0, devices)
    if placement.size != devices:
        raise UserError(
            f"{placement.launcher} has started {placement.size} processes, but the run is on "
            f"{devices} devices: --devices {placement.size}"
        )
    return placement
