"""Where a process stands among the ranks of a run. No torch needed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from ..errors import UserError


@dataclass(frozen=True)
class Place:
    """One process of `size`. local: among those of its machine.

    launcher: who starts the processes. "here": this one started the others, or was started by them.
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
    def outside(self) -> bool:
        """Whether somebody else has started all processes."""
        return self.launcher != "here"


def torchrun() -> Place | None:
    """The place that torchrun has given this process."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    local_rank, local_size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    return Place(rank, size, local_rank, local_size, "torchrun")


def started_with() -> int | None:
    """How many processes torchrun has started for one run; None without it. Slurm may as well have
    started runs that have nothing to do with each other: there, --devices says it."""
    place = torchrun()
    return None if place is None else place.size


def slurm() -> Place | None:
    """The place that srun has given this process, if it has started several."""
    size = int(os.environ.get("SLURM_STEP_NUM_TASKS", "1"))
    if size == 1:
        return None
    nodes = int(os.environ.get("SLURM_STEP_NUM_NODES", "1"))
    if size % nodes:
        raise UserError(f"{size} tasks on {nodes} nodes: give every node as many, by srun -n")
    rank, local_rank = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_LOCALID"])
    return Place(rank, size, local_rank, size // nodes, "slurm")


def local_ranks(devices: int) -> int:
    """How many ranks of a run on so many devices are on this machine."""
    return find_place(devices).local_size


def find_place(devices: int) -> Place:
    """Where this process stands in a run on so many devices; refused if that cannot be.

    >>> find_place(1)
    Place(rank=0, size=1, local_rank=0, local_size=1, launcher='here')
    """
    if devices == 1:
        return Place()
    if find_spec("lightning_fabric") is None:
        raise UserError(
            f"--devices {devices} needs lightning-fabric: pip install 'liderlab[parallel]'"
        )
    place = torchrun() or slurm() or Place(0, devices, 0, devices)
    if place.size != devices:
        raise UserError(
            f"{place.launcher} has started {place.size} processes, but the run is on {devices} "
            f"devices: --devices {place.size}"
        )
    return place
