"""`liderlab.run`: one run, by keywords or by a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ..config.merging import make_config
from ..config.run_options import RunOptions, default_folder, run_layer
from ..config.schema import RunConfig
from ..config.yaml_values import read_yaml
from ..distributed.placement import find_placement, torchrun_size
from ..errors import UserError, unknown
from ..sweeps.dotted_names import nested
from .run_result import RunResult

if TYPE_CHECKING:
    from ..runs.build import Run
    from ..runs.execute import Existing
    from ..runs.recorder import Listener
    from ..training.events import Event

KEYWORDS = (
    *("config", "out", "existing", "allow_changed_imports"),
    *("progress", "set", "listener", "on_start"),
)
COMMAND_LINE_ONLY = {
    "force": 'existing="replace"',
    "resume": 'existing="resume"',
    "regularizer": "regularizers=[…]",
}  # options of `lider run`, and the keywords that take their place here


def run(
    config: RunConfig | Mapping[str, Any] | str | Path | None = None,
    out: str | Path | None = None,
    *,
    existing: Existing = "refuse",
    allow_changed_imports: bool = False,
    progress: bool = True,
    set: Mapping[str, Any] | None = None,
    listener: Listener | None = None,
    on_start: Callable[[Run], None] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Train and evaluate, write the run folder, return the result.

    The keywords are the options of `lider run`: `run(method="er-ace", lider=True, buffer=100)`,
    `run(preset="cifar100-500-der++-lider", scale="cpu")`.

    Args:
        config: A configuration, its fields as a dict, or a YAML file; `options` win over it.
        out: The run folder; by default one below runs/, named as `lider run` names it.
        existing: What to do with an earlier run in the folder. "resume" goes on from its last
            checkpoint, and the result is the same, to the bit, as if it had never stopped; of a
            finished run it returns the result. "replace" starts again.
        allow_changed_imports: Resume although the imported files have changed.
        progress: Show a progress bar (lines, where there is neither terminal nor notebook).
        set: Any other fields, by their dotted names: `{"training.momentum": 0.9}`.
        listener: Called with the run and every event.
        on_start: Called with the run before training.
        **options: `lider` is True, False (removes a preset's) or a dict of LiDER's options;
            `regularizers` is a list of names or a dict of names and options; `method`,
            `benchmark` and `backbone` are names or dicts with a name and options.
    """
    from ..runs.accuracy_figure import leave_figure
    from ..runs.execute import run as execute

    complete = complete_config(config, options, set or {})
    folder = Path(out) if out is not None else default_folder(complete)
    if not find_placement(complete.devices).leads:
        result = execute(
            complete, folder, existing=existing, allow_changed_imports=allow_changed_imports
        )
        return RunResult(result, folder)
    with _display() if progress else nullcontext() as display:

        def heard(work: Run, event: Event) -> None:
            for listening in (display, listener):
                if listening:
                    listening(work, event)

        result = execute(
            complete,
            folder,
            existing=existing,
            allow_changed_imports=allow_changed_imports,
            listener=heard,
            on_start=on_start,
        )
    leave_figure(result, folder)
    return RunResult(result, folder)


def complete_config(
    config: RunConfig | Mapping[str, Any] | str | Path | None,
    options: RunOptions,
    fields: Mapping[str, Any],
) -> RunConfig:
    """The configuration with the options, then the fields by dotted name, merged over it."""
    for name in options:
        if name in COMMAND_LINE_ONLY:
            raise UserError(f"unknown keyword {name!r}: write {COMMAND_LINE_ONLY[name]}")
        if name not in RunOptions.__annotations__:
            raise unknown("keyword", name, [*KEYWORDS, *RunOptions.__annotations__])
    if not isinstance(fields, Mapping):
        raise UserError(f"set must be a dict like {{'training.lr': 0.1}}, not {fields!r}")
    layers = [run_layer(options), nested(fields)]
    if isinstance(config, RunConfig):
        if not any(layers):
            return config
        config = config.model_dump(mode="json", by_alias=True)
    if isinstance(config, (str, Path)):
        config = read_yaml(Path(config))
    if "devices" not in options and (size := torchrun_size()) is not None:
        layers.insert(0, {"devices": size})
    return make_config(config or {}, *layers)


def _display() -> Any:
    from ..report.terminal.console import SafeConsole
    from ..report.terminal.run_progress import ProgressDisplay

    return ProgressDisplay(SafeConsole(stderr=True))


def extend(
    run_folder: str | Path,
    benchmark: str | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    existing: Existing = "refuse",
    progress: bool = True,
    set: Mapping[str, Any] | None = None,
) -> RunResult:
    """Let a finished run go on with tasks of new classes, as a run of its own: `lider extend`.

    Args:
        run_folder: The finished run; nothing is written into its folder.
        benchmark: The benchmark with the new classes: its name, or its fields.
        out: The new run's folder; by default beside the old one, with -extended.
        existing, progress, set: As in `run`.
    """
    from ..runs.extension import extended_config

    section = {"name": benchmark} if isinstance(benchmark, str) else benchmark
    config = extended_config(run_folder, section, nested(set or {}))
    old = Path(run_folder)
    out = old.with_name(f"{old.name}-extended") if out is None else out
    return run(config, out, existing=existing, progress=progress)
