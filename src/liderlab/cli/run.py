"""Commands that train: run, resume."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UserError, unknown
from . import completion
from . import run_options as option
from .help_pages import TRAIN, examples
from .shared import RunArgument, given
from .training_commands import assigned, train

app = typer.Typer()


@app.command(
    rich_help_panel=TRAIN,
    epilog=examples(
        "lider run --method er-ace --lider --buffer 100 --out runs/x",
        "lider run --preset cifar100-500-der++-lider --scale cpu --seed 1",
        "lider run --config runs/x/config.yaml --set training.lr=0.05 --out runs/y",
    ),
)
def run(
    preset: option.Preset = None,
    scale: option.Scale = None,
    benchmark: option.Benchmark = None,
    method: option.Method = None,
    lider: option.Lider = False,
    lider_alpha: option.LiderAlpha = None,
    lider_beta: option.LiderBeta = None,
    lider_on: option.LiderOn = None,
    lider_draw: option.LiderDraw = None,
    lider_targets: option.LiderTargets = None,
    regularizer: option.Regularizer = None,
    buffer: option.Buffer = None,
    epochs: option.Epochs = None,
    batch_size: option.BatchSize = None,
    lr: option.Lr = None,
    backbone: option.Backbone = None,
    width: option.Width = None,
    pretrained: option.Pretrained = None,
    tasks: option.Tasks = None,
    class_order: option.ClassOrder = None,
    seed: option.Seed = None,
    device: option.Device = None,
    memory_storage: option.MemoryStorage = None,
    memory_device: option.MemoryDevice = None,
    stream_device: option.StreamDevice = None,
    precision: option.Precision = None,
    compile_: option.Compile = False,
    evaluate: option.Evaluate = None,
    threads: option.Threads = None,
    devices: option.Devices = None,
    strategy: option.Strategy = None,
    config: option.Config = None,
    set_: option.Set = None,
    out: option.Out = None,
    force: option.Force = False,
    resume: option.Resume = False,
    checkpoint_every: option.CheckpointEvery = None,
    on_nonfinite: option.OnNonfinite = None,
    tracker: option.Tracker = None,
    deterministic: option.Deterministic = None,
) -> None:
    """Train a method on a benchmark, evaluate it, keep everything.

    Reads the benchmark's data (below LIDER_DATA; split-digits and synthetic need none), and what
    --config and --pretrained name. Writes config.yaml, metrics.jsonl, checkpoints/, result.json and
    accuracy.png into --out, the run's folder. Prints metrics; progress goes to standard error.

    Values come from the defaults, the benchmark, --preset, --config, the options, and --set; later
    ones win. --scale then lowers them.
    """
    from ..config.merging import make_config
    from ..config.yaml_values import read_yaml
    from ..distributed.placement import started_with

    options: dict[str, Any] = {
        "benchmark": given(
            name=benchmark,
            tasks=tasks,
            class_order=_class_order(class_order),
            device=stream_device,
        ),
        "method": given(name=method),
        "backbone": given(name=backbone, width=width),
        "memory": given(size=buffer, storage=memory_storage, device=memory_device),
        "training": given(epochs=epochs, batch_size=batch_size, lr=lr),
        "regularizers": {name: {} for name in regularizer or []},
        **given(
            preset=preset,
            scale=scale,
            pretrained=pretrained,
            seed=seed,
            device=device,
            precision=precision,
            compile="inductor" if compile_ else None,
            evaluate=evaluate,
            devices=started_with() if devices is None else devices,
            strategy=strategy,
            threads=threads,
            deterministic=deterministic,
            checkpoint_every=checkpoint_every,
            on_nonfinite=on_nonfinite,
            tracker=tracker or None,
        ),
    }
    of_lider = given(
        alpha=lider_alpha,
        beta=lider_beta,
        on=lider_on,
        draw=lider_draw,
        learn_targets=_learned(lider_targets),
    )
    if lider or of_lider:
        options["regularizers"]["lider"] = of_lider
    if force and resume:
        raise UserError("--force starts again and --resume goes on: give one of them")
    layers = [read_yaml(config)] if config else []
    # an empty section must not stand in for whatever a file says there
    options = {field: value for field, value in options.items() if value != {}}
    complete = make_config(*layers, options, assigned(set_))
    name = "-".join([complete.benchmark.name, complete.method.name, *complete.regularizers])
    out = out or Path("runs") / f"{complete.preset or name}-seed{complete.seed}"
    train(complete, out, "replace" if force else "resume" if resume else None)


@app.command(
    rich_help_panel=TRAIN,
    epilog=examples("lider resume runs/x", "lider resume runs/x --on-nonfinite skip"),
)
def resume(
    run: RunArgument,
    on_nonfinite: Annotated[
        str | None,
        typer.Option(
            help="From now on: stop, or skip steps that are not finite.",
            metavar="WHAT",
            show_default="as before",
            autocompletion=completion.one_of("stop", "skip"),
        ),
    ] = None,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(
            help="From now on: steps (200) or time (30s, 5m).",
            metavar="INTERVAL",
            show_default="as before",
        ),
    ] = None,
    tracker: Annotated[
        list[str] | None,
        typer.Option(
            help="From now on: tensorboard, wandb or mlflow; repeatable; or none.",
            metavar="NAME",
            show_default="as before",
            autocompletion=completion.one_of("tensorboard", "wandb", "mlflow", "none"),
        ),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(help="From now on: shared among so many devices.", show_default="as before"),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="From now on: ddp, or ddp-syncbn.",
            metavar="NAME",
            show_default="as before",
            autocompletion=completion.one_of("ddp", "ddp-syncbn"),
        ),
    ] = None,
) -> None:
    """Go on with an interrupted run, as if it had never stopped.

    Reads config.yaml and the last whole checkpoint in RUN, and the run's data; writes the same
    files as lider run. A finished run is shown again, and nothing is done.
    """
    from ..config.merging import make_config
    from ..distributed.placement import started_with
    from ..runs.folder import RunFolder

    folder = RunFolder.open(run)
    changes = given(
        on_nonfinite=on_nonfinite,
        checkpoint_every=checkpoint_every,
        tracker=[] if tracker == ["none"] else tracker or None,
        devices=started_with() if devices is None else devices,
        strategy=strategy,
    )
    config = folder.config()
    if changes:
        config = make_config(config.model_dump(mode="json"), changes)
    train(config, run, "resume")


def _class_order(text: str | None) -> Any:
    if text is None or text in ("natural", "shuffled"):
        return text
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(
            f"--class-order takes natural, shuffled, or all classes like 3,1,2,0, not {text!r}"
        ) from None


def _learned(text: str | None) -> bool | None:
    if text not in (None, "learned", "fixed"):
        raise unknown("--lider-targets", text, ["learned", "fixed"])
    return None if text is None else text == "learned"
