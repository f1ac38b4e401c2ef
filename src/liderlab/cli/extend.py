"""`lider extend`: let a finished run go on with new classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from . import option_types as o
from .commands import command
from .option_types import RunPath, assigned, given, option
from .run import train


@command(
    "lider extend runs/x --benchmark folder:photos --tasks 2 --out runs/y",
    "lider extend runs/x --benchmark folder:photos --tasks 1 --epochs 2",
)
def extend(
    run: RunPath,
    benchmark: Annotated[
        str, option("The benchmark with the new classes (lider list benchmarks), or folder:PATH.")
    ],
    tasks: o.Tasks = None,
    epochs: Annotated[int | None, option("Epochs per task.", default="as before")] = None,
    lr: Annotated[float | None, option("Learning rate.", default="as before")] = None,
    set_: o.Set = None,
    out: Annotated[
        Path | None, option("The new run's folder.", metavar="DIR", default="RUN-extended")
    ] = None,
) -> None:
    """Let a finished run go on with new classes, as a new run.

    Reads config.yaml, result.json and the last checkpoint in RUN, and the data of the old and the
    new tasks; writes the same files as lider run, into --out, and nothing into RUN. Network,
    memory, method and regularizers go on as they are. The new run can be resumed, extended and
    reported like any other.
    """
    from ..runs.extension import extended_config
    from .run import parse_tasks

    section = given(name=benchmark, tasks=parse_tasks(tasks))
    training = given(epochs=epochs, lr=lr)
    config = extended_config(run, section, {"training": training}, assigned(set_))
    train(config, out or run.with_name(f"{run.name}-extended"), None)
