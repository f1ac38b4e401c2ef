"""Commands that train: run, resume."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UserError, unknown
from . import complete
from .manual import TRAIN, examples
from .shared import RunArgument, given
from .training import assigned, train

app = typer.Typer()
WHAT, LIDER, NETWORK, TRAINING, MACHINE, FILES = (
    "What to run",
    "LiDER",
    "The network",
    "Training",
    "The machine",
    "Files",
)  # among the options of `lider run`


@app.command(
    rich_help_panel=TRAIN,
    epilog=examples(
        "lider run --method er-ace --lider --buffer 100 --out runs/x",
        "lider run --preset cifar100-500-der++-lider --scale cpu --seed 1",
        "lider run --config runs/x/config.yaml --set training.lr=0.05 --out runs/y",
    ),
)
def run(
    preset: Annotated[
        str | None,
        typer.Option(
            help="An experiment of the paper: lider list presets.",
            metavar="NAME",
            rich_help_panel=WHAT,
            autocompletion=complete.presets,
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Make it smaller: smoke, cpu, or paper (as it is).",
            metavar="SCALE",
            rich_help_panel=WHAT,
            autocompletion=complete.scales,
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            help="What to learn: lider list benchmarks, or folder:PATH.",
            metavar="NAME",
            show_default="split-digits",
            rich_help_panel=WHAT,
            autocompletion=complete.benchmarks,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="How: lider list methods.",
            metavar="NAME",
            show_default="er-ace",
            rich_help_panel=WHAT,
            autocompletion=complete.methods,
        ),
    ] = None,
    lider: Annotated[
        bool,
        typer.Option("--lider", help="Add LiDER (--regularizer lider).", rich_help_panel=LIDER),
    ] = False,
    lider_alpha: Annotated[
        float | None,
        typer.Option(help="Weight of |λ − c| (Eq. 9).", show_default="0.1", rich_help_panel=LIDER),
    ] = None,
    lider_beta: Annotated[
        float | None,
        typer.Option(help="Weight of |λ| (Eq. 9).", show_default="0.3", rich_help_panel=LIDER),
    ] = None,
    lider_on: Annotated[
        str | None,
        typer.Option(
            help="What LiDER hears: replay, or stream (ablation).",
            metavar="ROWS",
            show_default="replay",
            rich_help_panel=LIDER,
            autocompletion=complete.one_of("replay", "stream"),
        ),
    ] = None,
    lider_draw: Annotated[
        str | None,
        typer.Option(
            help="reuse the replay passes, or draw fresh (as released).",
            metavar="HOW",
            show_default="reuse",
            rich_help_panel=LIDER,
            autocompletion=complete.one_of("reuse", "fresh"),
        ),
    ] = None,
    lider_targets: Annotated[
        str | None,
        typer.Option(
            help="learned targets, or fixed ones (ablation).",
            metavar="KIND",
            show_default="learned",
            rich_help_panel=LIDER,
            autocompletion=complete.one_of("learned", "fixed"),
        ),
    ] = None,
    regularizer: Annotated[
        list[str] | None,
        typer.Option(
            help="Add a regularizer, repeatable: lider list regularizers.",
            metavar="NAME",
            rich_help_panel=WHAT,
            autocompletion=complete.regularizers,
        ),
    ] = None,
    buffer: Annotated[
        int | None,
        typer.Option(
            help="Samples in memory, in all.",
            show_default="the benchmark's",
            rich_help_panel=WHAT,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            help="Epochs per task.", show_default="the benchmark's", rich_help_panel=TRAINING
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Samples of the stream per step.",
            show_default="the benchmark's",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(
            help="Learning rate.", show_default="the benchmark's", rich_help_panel=TRAINING
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="Network: lider list backbones, or timm:NAME, torchvision:NAME.",
            metavar="NAME",
            show_default="the benchmark's",
            rich_help_panel=NETWORK,
            autocompletion=complete.backbones,
        ),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option(
            help="The network's width.", show_default="the network's own", rich_help_panel=NETWORK
        ),
    ] = None,
    pretrained: Annotated[
        str | None,
        typer.Option(
            help="Weights to start from: a file, a run's folder, imagenet, or a name that lider "
            "pretrain has kept some under.",
            metavar="WEIGHTS",
            show_default="none",
            rich_help_panel=NETWORK,
            autocompletion=complete.weights,
        ),
    ] = None,
    tasks: Annotated[
        int | None,
        typer.Option(help="Number of tasks.", show_default="the benchmark's", rich_help_panel=WHAT),
    ] = None,
    class_order: Annotated[
        str | None,
        typer.Option(
            help="natural, shuffled, or all classes like 3,1,2,0.",
            metavar="ORDER",
            show_default="natural",
            rich_help_panel=WHAT,
            autocompletion=complete.one_of("natural", "shuffled"),
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of everything random.", show_default="0", rich_help_panel=TRAINING),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, cuda, cuda:1, …, mps or auto.",
            metavar="DEVICE",
            show_default="cpu",
            rich_help_panel=MACHINE,
            autocompletion=complete.one_of("cpu", "cuda", "mps", "auto"),
        ),
    ] = None,
    memory_storage: Annotated[
        str | None,
        typer.Option(
            help="Where the memory's images are: ram, or disk.",
            metavar="PLACE",
            show_default="ram",
            rich_help_panel=MACHINE,
            autocompletion=complete.one_of("ram", "disk"),
        ),
    ] = None,
    memory_device: Annotated[
        str | None,
        typer.Option(
            help="Device of a memory in RAM.",
            metavar="DEVICE",
            show_default="the network's",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    stream_device: Annotated[
        str | None,
        typer.Option(
            help="Keep the benchmark's images on this device.",
            metavar="DEVICE",
            show_default="the host",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="Of training passes: float32, bfloat16 or float16.",
            metavar="TYPE",
            show_default="float32",
            rich_help_panel=MACHINE,
            autocompletion=complete.one_of("float32", "bfloat16", "float16"),
        ),
    ] = None,
    compile_: Annotated[
        bool,
        typer.Option(
            "--compile", help="Compile the network (torch.compile).", rich_help_panel=MACHINE
        ),
    ] = False,
    evaluate: Annotated[
        str | None,
        typer.Option(
            help="After every task, or after the last only: every, last.",
            metavar="WHEN",
            show_default="every",
            rich_help_panel=TRAINING,
            autocompletion=complete.one_of("every", "last"),
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="CPU threads, of each process.", show_default="torch's", rich_help_panel=MACHINE
        ),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            help="Share the run among so many devices, or CPU processes.",
            show_default="1",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Of several devices: ddp, or ddp-syncbn: BatchNorm over the rows of all of them.",
            metavar="NAME",
            show_default="ddp",
            rich_help_panel=MACHINE,
            autocompletion=complete.one_of("ddp", "ddp-syncbn"),
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Take the values of a YAML file (a run's config.yaml).",
            metavar="FILE",
            rich_help_panel=FILES,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any field of the configuration, repeatable: --set training.momentum=0.9",
            metavar="FIELD=VALUE",
            rich_help_panel=FILES,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The run's folder.",
            metavar="FOLDER",
            show_default="one below runs/",
            rich_help_panel=FILES,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an earlier run there.", rich_help_panel=FILES),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with an unfinished run there, if there is one.",
            rich_help_panel=FILES,
        ),
    ] = False,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(
            help="Steps (200) or time (30s, 5m) between checkpoints.",
            metavar="INTERVAL",
            show_default="5m",
            rich_help_panel=FILES,
        ),
    ] = None,
    on_nonfinite: Annotated[
        str | None,
        typer.Option(
            help="stop, or skip steps whose loss or gradient is not finite.",
            metavar="WHAT",
            show_default="stop",
            rich_help_panel=TRAINING,
            autocompletion=complete.one_of("stop", "skip"),
        ),
    ] = None,
    tracker: Annotated[
        list[str] | None,
        typer.Option(
            help="Also log to tensorboard, wandb or mlflow; repeatable.",
            metavar="NAME",
            rich_help_panel=FILES,
            autocompletion=complete.one_of("tensorboard", "wandb", "mlflow"),
        ),
    ] = None,
    deterministic: Annotated[
        bool | None,
        typer.Option(
            help="Allow only operations that repeat to the bit.",
            show_default="yes on the CPU",
            rich_help_panel=MACHINE,
        ),
    ] = None,
) -> None:
    """Train a method on a benchmark, evaluate it, keep everything.

    Reads the benchmark's data (below LIDER_DATA; split-digits and synthetic need none), and what
    --config and --pretrained name. Writes config.yaml, metrics.jsonl, checkpoints/, result.json and
    accuracy.png into --out, the run's folder. Prints metrics; progress goes to standard error.

    Values come from the defaults, the benchmark, --preset, --config, the options, and --set; later
    ones win. --scale then lowers them.
    """
    from ..experiments.config import make_config, read_yaml
    from ..experiments.place import started_with

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
            autocompletion=complete.one_of("stop", "skip"),
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
            help="From now on: tensorboard, wandb or mlflow; repeatable.",
            metavar="NAME",
            show_default="as before",
            autocompletion=complete.one_of("tensorboard", "wandb", "mlflow"),
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
            autocompletion=complete.one_of("ddp", "ddp-syncbn"),
        ),
    ] = None,
) -> None:
    """Go on with an interrupted run, as if it had never stopped.

    Reads config.yaml and the last whole checkpoint in RUN, and the run's data; writes the same
    files as lider run. A finished run is shown again, and nothing is done.
    """
    from ..experiments.config import make_config
    from ..experiments.folder import RunFolder
    from ..experiments.place import started_with

    folder = RunFolder.open(run)
    changes = given(
        on_nonfinite=on_nonfinite,
        checkpoint_every=checkpoint_every,
        tracker=tracker or None,
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
