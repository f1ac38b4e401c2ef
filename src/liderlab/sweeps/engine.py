"""The interface of engines, and how to make one from its name and options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..config.yaml_values import parse_assignment
from ..errors import UserError, unknown
from ..runs.planned_run import PlannedRun
from .resources import cores, gpus
from .worker import Ending

ENGINES = ("local", "ray", "slurm")


@dataclass(frozen=True)
class Ended:
    """A run whose worker has ended. ending: as the worker reported it; None if the worker died,
    and `why` is the cause."""

    plan: PlannedRun
    ending: Ending | None
    why: str = ""


class Engine(Protocol):
    """Starts runs, and reports which have ended."""

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        """Start the first ones of `waiting`, as many as there is room for, and return them."""
        ...

    def ended(self, seconds: float) -> list[Ended]:
        """Runs that have ended since the last call; waits at most `seconds` for the first one."""
        ...

    def cancel(self, plan: PlannedRun) -> None:
        """Let the run save and stop; `ended` then returns it."""
        ...

    def close(self) -> None:
        """Kill the workers that are left."""
        ...


def check_engine(
    name: str, workers: int | None, address: str | None, slurm: Sequence[str] | None
) -> None:
    """Refuse bad values, and options of another engine, which would have no effect."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if workers is not None and workers < 1:
        raise UserError(f"--workers must be at least 1, not {workers}")
    if address is not None and name != "ray":
        raise UserError(f"--address is for --engine ray, not {name}")
    if slurm and name != "slurm":
        raise UserError(f"--slurm is for --engine slurm, not {name}")
    slurm_options(slurm)


def slurm_options(slurm: Sequence[str] | None) -> dict[str, Any]:
    """Parse the values of --slurm.

    >>> slurm_options(["timeout_min=60", "slurm_partition=gpu"])
    {'timeout_min': 60, 'slurm_partition': 'gpu'}
    """
    options: dict[str, Any] = {}
    for text in slurm or ():
        try:
            options |= parse_assignment(text)
        except UserError:
            raise UserError(
                f"--slurm: expected KEY=VALUE, like timeout_min=60, but got {text!r}"
            ) from None
    return options


def default_workers(device: str | None) -> int:
    """One worker per GPU of this machine if the runs use GPUs, else one per core."""
    return (len(gpus()) if device == "cuda" else 0) or cores()


def threads_each(engine: str, workers: int) -> int:
    """Default threads per run: a local worker's share of the cores; 1 on other engines."""
    return max(1, cores() // workers) if engine == "local" else 1


def make_engine(
    name: str, workers: int | None, address: str | None, slurm: Sequence[str] | None, out: Path
) -> Engine:
    """The engine of that name; `out` is the folder of the sweep or search."""
    if name == "ray":
        from .ray_engine import RayEngine

        return RayEngine(workers, address)
    if name == "slurm":
        from .slurm_engine import SlurmEngine

        return SlurmEngine(out / "jobs", workers, slurm_options(slurm))
    from .local_engine import LocalEngine

    return LocalEngine(workers or cores())
