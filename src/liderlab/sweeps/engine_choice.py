"""The engines by name, with what they are given on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config.yaml_values import parse_assignment
from ..errors import UserError, unknown
from .engine import Engine
from .resources import cores, gpus

ENGINES = ("local", "ray", "slurm")


def check_engine(
    name: str, workers: int | None, address: str | None, slurm: Sequence[str] | None
) -> None:
    """Refuse what cannot be meant, and options of another engine: they would do nothing."""
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
    """
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


def default_workers(devices: Sequence[str]) -> int:
    """Of this machine: one per GPU if runs ask for them, else one per core."""
    if "cuda" in devices and (count := len(gpus())):
        return count
    return cores()


def threads_each(engine: str, workers: int) -> int:
    """This machine's cores divided among the workers; one on other machines, unless runs say."""
    return max(1, cores() // workers) if engine == "local" else 1


def make_engine(
    name: str, workers: int | None, address: str | None, slurm: Sequence[str] | None, out: Path
) -> Engine:
    if name == "ray":
        from .ray_engine import RayEngine

        return RayEngine(workers, address)
    if name == "slurm":
        from .slurm_engine import SlurmEngine

        return SlurmEngine(out / "jobs", workers, slurm_options(slurm))
    from .local_engine import LocalEngine

    return LocalEngine(workers or cores())
