"""`lider run`, and the training that `resume` and `pretrain` share with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from ..errors import UserError
from . import option_types as o
from .commands import command
from .option_types import assigned
from .output import new_console

if TYPE_CHECKING:
    from ..config.schema import RunConfig
    from ..runs.build import Run
    from ..runs.execute import Existing


@command(
    "lider run --method er-ace --lider --buffer 100 --out runs/x",
    "lider run --preset cifar100-500-der++-lider --scale cpu --seed 1",
    "lider run --config runs/x/config.yaml --set training.lr=0.05 --out runs/y",
)
def run(
    preset: o.Preset = None,
    scale: o.Scale = None,
    imports: o.Imports = None,
    benchmark: o.Benchmark = None,
    method: o.Method = None,
    lider: o.Lider = False,
    lider_form: o.LiderForm = None,
    lider_alpha: o.LiderAlpha = None,
    lider_beta: o.LiderBeta = None,
    lider_on: o.LiderOn = None,
    lider_draw: o.LiderDraw = None,
    lider_targets: o.LiderTargets = None,
    regularizer: o.Regularizer = None,
    buffer: o.Buffer = None,
    epochs: o.Epochs = None,
    batch_size: o.BatchSize = None,
    lr: o.Lr = None,
    backbone: o.Backbone = None,
    width: o.Width = None,
    freeze: o.Freeze = None,
    heads: o.Heads = None,
    pretrained: o.Pretrained = None,
    tasks: o.Tasks = None,
    base: o.Base = None,
    imbalance: o.Imbalance = None,
    blurry: o.Blurry = None,
    task_free: o.TaskFree = False,
    class_order: o.ClassOrder = None,
    seed: o.Seed = None,
    device: o.Device = None,
    memory_storage: o.MemoryStorage = None,
    memory_device: o.MemoryDevice = None,
    stream_device: o.StreamDevice = None,
    precision: o.Precision = None,
    compile_: o.Compile = False,
    evaluate: o.Evaluate = None,
    threads: o.Threads = None,
    devices: o.Devices = None,
    strategy: o.Strategy = None,
    config: o.Config = None,
    set_: o.Set = None,
    out: o.Out = None,
    force: o.Force = False,
    resume: o.Resume = False,
    allow_changed_imports: o.AllowChangedImports = False,
    checkpoint_every: o.CheckpointEvery = None,
    on_nonfinite: o.OnNonfinite = None,
    tracker: o.Tracker = None,
    deterministic: o.Deterministic = None,
) -> None:
    """Train a method on a benchmark, evaluate it, keep everything.

    Reads the benchmark's data (below LIDER_DATA; split-digits and synthetic need none), and the
    files of --config, --import and --pretrained. Writes config.yaml, metrics.jsonl, checkpoints/,
    result.json and accuracy.png into --out, the run folder. Prints metrics; progress goes to
    standard error.

    Values come from the defaults, the benchmark, --preset, --config, the options, and --set; later
    ones win. --scale then lowers them.
    """
    from ..config.merging import make_config
    from ..config.run_options import default_folder, run_layer
    from ..config.yaml_values import read_yaml
    from ..distributed.placement import torchrun_size

    if force and resume:
        raise UserError("--force starts again and --resume goes on: give one of them")
    layer = run_layer(
        {
            "preset": preset,
            "scale": scale,
            "imports": imports or None,
            "benchmark": benchmark,
            "method": method,
            "lider": lider or None,
            "lider_form": lider_form,
            "lider_alpha": lider_alpha,
            "lider_beta": lider_beta,
            "lider_on": lider_on,
            "lider_draw": lider_draw,
            "lider_targets": lider_targets,
            "regularizers": regularizer or None,
            "buffer": buffer,
            "epochs": epochs,
            "batch_size": batch_size,
            "lr": lr,
            "backbone": backbone,
            "width": width,
            "freeze": _patterns(freeze),
            "heads": heads,
            "pretrained": pretrained,
            "tasks": parse_tasks(tasks),
            "base": base,
            "imbalance": imbalance,
            "blurry": blurry,
            "task_free": task_free or None,
            "class_order": _class_order(class_order),
            "seed": seed,
            "device": device,
            "memory_storage": memory_storage,
            "memory_device": memory_device,
            "stream_device": stream_device,
            "precision": precision,
            "compile": compile_ or None,
            "evaluate": evaluate,
            "threads": threads,
            "devices": torchrun_size() if devices is None else devices,
            "strategy": strategy,
            "checkpoint_every": checkpoint_every,
            "on_nonfinite": on_nonfinite,
            "tracker": tracker or None,
            "deterministic": deterministic,
        }
    )
    files = [read_yaml(config)] if config else []
    complete = make_config(*files, layer, assigned(set_))
    out = out or default_folder(complete)
    existing: Existing | None = "replace" if force else "resume" if resume else None
    train(complete, out, existing, allow_changed_imports)


def _patterns(text: str | None) -> Any:
    return text if text is None or text == "all-but-head" else text.split(",")


def parse_tasks(text: str | None) -> Any:
    if text is None or "," not in text:
        return text
    return [int(part) if part.strip().isdecimal() else part for part in text.split(",")]


def _class_order(text: str | None) -> Any:
    if text is None or text in o.ORDERS:
        return text
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(
            f"--class-order takes natural, shuffled, or all classes like 3,1,2,0, not {text!r}"
        ) from None


def train(
    config: RunConfig, out: Path, existing: Existing | None, allow_changed_imports: bool = False
) -> bool:
    """Run with a progress display, then print the metrics.

    existing: None asks the user about an unfinished run in the folder. Returns whether this process
    leads the run; where several share it, the others print and write nothing.
    """
    from ..distributed.placement import find_placement
    from ..report.terminal.result_tables import metric_table, remarks, run_time
    from ..report.terminal.run_progress import ProgressDisplay
    from ..runs.accuracy_figure import leave_figure
    from ..runs.execute import run as execute

    leads = find_placement(config.devices).leads
    existing = existing or (_ask_about(out) if leads else "refuse")
    if not leads:
        execute(config, out, existing=existing, allow_changed_imports=allow_changed_imports)
        return False
    progress = new_console(stderr=True)
    started: list[Run] = []

    def on_start(work: Run) -> None:
        started.append(work)
        for line in _regularised_stages(work):
            progress.print(line, soft_wrap=not progress.is_terminal)

    with ProgressDisplay(progress) as display:
        result = execute(
            config,
            out,
            existing=existing,
            allow_changed_imports=allow_changed_imports,
            listener=display,
            on_start=on_start,
        )
    leave_figure(result, out)
    new_console().print(metric_table(result))
    for remark in remarks(result):
        print(remark)
    if started:
        print(f"wrote {out} in {run_time(result)}")
    else:
        print(f"{out} had finished already: nothing was done")
    return True


def _ask_about(out: Path) -> Literal["refuse", "resume"]:
    """Ask whether to resume an unfinished run; refuse where no user can answer."""
    from ..runs.folder import RunFolder

    folder = RunFolder(out)
    if not folder.begun or folder.finished or folder.foreign:
        return "refuse"
    answers = sys.stdin is not None and sys.stdin.isatty()  # None: closed by the parent process
    if answers and typer.confirm(f"{out} holds an unfinished run: resume it?"):
        return "resume"
    raise UserError(
        f"{out} holds an unfinished run: --resume to go on with it, --force to start again"
    )


def _regularised_stages(work: Run) -> Iterator[str]:
    """The stages that each regulariser covers, named by the user or found in the network."""
    from ..runs.result import resolved

    for name, found in resolved(work).items():
        left_out = ", ".join(found["left_out"])
        rest = f"; nothing to regularise in {left_out}" if left_out else ""
        estimator = work.config.regularizers[name].get("estimator")
        form = f" ({estimator} form)" if estimator else ""
        yield f"{name}{form} regularises {' → '.join(found['chain'])}{rest}"
