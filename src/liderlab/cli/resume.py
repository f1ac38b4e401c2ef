"""`lider resume`: continue an interrupted run."""

from __future__ import annotations

from typing import Annotated

from . import option_types as o
from .commands import command
from .option_types import TRACKERS, RunPath, given, option
from .run import train

AS_BEFORE = "as before"


@command("lider resume runs/x", "lider resume runs/x --on-nonfinite skip")
def resume(
    run: RunPath,
    on_nonfinite: Annotated[
        str | None,
        option(
            "From now on, stop at a non-finite loss or gradient, or skip the step.",
            metavar="ACTION",
            default=AS_BEFORE,
            values=("stop", "skip"),
        ),
    ] = None,
    checkpoint_every: Annotated[
        str | None,
        option(
            "From now on, steps (200) or time (30s, 5m) between checkpoints.",
            metavar="INTERVAL",
            default=AS_BEFORE,
        ),
    ] = None,
    tracker: Annotated[
        list[str] | None,
        option(
            "From now on, log to tensorboard, wandb or mlflow, repeatable; or none.",
            default=AS_BEFORE,
            values=(*TRACKERS, "none"),
        ),
    ] = None,
    devices: Annotated[
        int | None,
        option("From now on, share the run among so many devices.", default=AS_BEFORE),
    ] = None,
    strategy: Annotated[
        str | None,
        option("From now on, ddp or ddp-syncbn.", default=AS_BEFORE, values=("ddp", "ddp-syncbn")),
    ] = None,
    imports: Annotated[
        list[str] | None,
        option(
            "The imported Python files, if they have moved; repeatable.",
            names=["--import"],
            metavar="FILE",
            default=AS_BEFORE,
        ),
    ] = None,
    allow_changed_imports: o.AllowChangedImports = False,
) -> None:
    """Continue an interrupted run, as if it had never stopped.

    Reads config.yaml and the last intact checkpoint in RUN, the run's data, and its imported files;
    writes the same files as lider run. A finished run is only shown.
    """
    from ..config.merging import make_config
    from ..distributed.placement import torchrun_size
    from ..runs.folder import RunFolder

    config = RunFolder.open(run).config()
    changes = given(
        on_nonfinite=on_nonfinite,
        checkpoint_every=checkpoint_every,
        tracker=[] if tracker == ["none"] else tracker or None,
        devices=torchrun_size() if devices is None else devices,
        strategy=strategy,
        imports=imports or None,
    )
    if changes:
        config = make_config(config.model_dump(mode="json"), changes)
    train(config, run, "resume", allow_changed_imports)
