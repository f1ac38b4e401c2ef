"""The options of `lider run`, one name each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import completion

WHAT, LIDER, NETWORK, TRAINING, MACHINE, FILES = (
    "What to run",
    "LiDER",
    "The network",
    "Training",
    "The machine",
    "Files",
)  # the groups in which --help lists them

Preset = Annotated[
    str | None,
    typer.Option(
        help="An experiment of the paper: lider list presets.",
        metavar="NAME",
        rich_help_panel=WHAT,
        autocompletion=completion.presets,
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        help="Make it smaller: smoke, cpu, or paper (as it is).",
        metavar="SCALE",
        rich_help_panel=WHAT,
        autocompletion=completion.scales,
    ),
]
Benchmark = Annotated[
    str | None,
    typer.Option(
        help="What to learn: lider list benchmarks, or folder:PATH.",
        metavar="NAME",
        show_default="split-digits",
        rich_help_panel=WHAT,
        autocompletion=completion.benchmarks,
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        help="How: lider list methods.",
        metavar="NAME",
        show_default="er-ace",
        rich_help_panel=WHAT,
        autocompletion=completion.methods,
    ),
]
Lider = Annotated[
    bool,
    typer.Option("--lider", help="Add LiDER (--regularizer lider).", rich_help_panel=LIDER),
]
LiderAlpha = Annotated[
    float | None,
    typer.Option(help="Weight of |λ − c| (Eq. 9).", show_default="0.1", rich_help_panel=LIDER),
]
LiderBeta = Annotated[
    float | None,
    typer.Option(help="Weight of |λ| (Eq. 9).", show_default="0.3", rich_help_panel=LIDER),
]
LiderOn = Annotated[
    str | None,
    typer.Option(
        help="What LiDER hears: replay, or stream (ablation).",
        metavar="ROWS",
        show_default="replay",
        rich_help_panel=LIDER,
        autocompletion=completion.one_of("replay", "stream"),
    ),
]
LiderDraw = Annotated[
    str | None,
    typer.Option(
        help="reuse the replay passes, or draw fresh (as released).",
        metavar="HOW",
        show_default="reuse",
        rich_help_panel=LIDER,
        autocompletion=completion.one_of("reuse", "fresh"),
    ),
]
LiderTargets = Annotated[
    str | None,
    typer.Option(
        help="learned targets, or fixed ones (ablation).",
        metavar="KIND",
        show_default="learned",
        rich_help_panel=LIDER,
        autocompletion=completion.one_of("learned", "fixed"),
    ),
]
Regularizer = Annotated[
    list[str] | None,
    typer.Option(
        help="Add a regularizer, repeatable: lider list regularizers.",
        metavar="NAME",
        rich_help_panel=WHAT,
        autocompletion=completion.regularizers,
    ),
]
Buffer = Annotated[
    int | None,
    typer.Option(
        help="Samples in memory, in all.",
        show_default="the benchmark's",
        rich_help_panel=WHAT,
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(help="Epochs per task.", show_default="the benchmark's", rich_help_panel=TRAINING),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        help="Samples of the stream per step.",
        show_default="the benchmark's",
        rich_help_panel=TRAINING,
    ),
]
Lr = Annotated[
    float | None,
    typer.Option(help="Learning rate.", show_default="the benchmark's", rich_help_panel=TRAINING),
]
Backbone = Annotated[
    str | None,
    typer.Option(
        help="Network: lider list backbones, or timm:NAME, torchvision:NAME.",
        metavar="NAME",
        show_default="the benchmark's",
        rich_help_panel=NETWORK,
        autocompletion=completion.backbones,
    ),
]
Width = Annotated[
    int | None,
    typer.Option(
        help="The network's width.", show_default="the network's own", rich_help_panel=NETWORK
    ),
]
Pretrained = Annotated[
    str | None,
    typer.Option(
        help="Weights to start from: a file, a run's folder, imagenet, or a name that lider "
        "pretrain has kept some under.",
        metavar="WEIGHTS",
        show_default="none",
        rich_help_panel=NETWORK,
        autocompletion=completion.weights,
    ),
]
Tasks = Annotated[
    int | None,
    typer.Option(help="Number of tasks.", show_default="the benchmark's", rich_help_panel=WHAT),
]
ClassOrder = Annotated[
    str | None,
    typer.Option(
        help="natural, shuffled, or all classes like 3,1,2,0.",
        metavar="ORDER",
        show_default="natural",
        rich_help_panel=WHAT,
        autocompletion=completion.one_of("natural", "shuffled"),
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Seed of everything random.", show_default="0", rich_help_panel=TRAINING),
]
Device = Annotated[
    str | None,
    typer.Option(
        help="cpu, cuda, cuda:1, …, mps or auto.",
        metavar="DEVICE",
        show_default="cpu",
        rich_help_panel=MACHINE,
        autocompletion=completion.one_of("cpu", "cuda", "mps", "auto"),
    ),
]
MemoryStorage = Annotated[
    str | None,
    typer.Option(
        help="Where the memory's images are: ram, or disk.",
        metavar="PLACE",
        show_default="ram",
        rich_help_panel=MACHINE,
        autocompletion=completion.one_of("ram", "disk"),
    ),
]
MemoryDevice = Annotated[
    str | None,
    typer.Option(
        help="Device of a memory in RAM.",
        metavar="DEVICE",
        show_default="the network's",
        rich_help_panel=MACHINE,
    ),
]
StreamDevice = Annotated[
    str | None,
    typer.Option(
        help="Keep the benchmark's images on this device.",
        metavar="DEVICE",
        show_default="the host",
        rich_help_panel=MACHINE,
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="Of training passes: float32, bfloat16 or float16.",
        metavar="TYPE",
        show_default="float32",
        rich_help_panel=MACHINE,
        autocompletion=completion.one_of("float32", "bfloat16", "float16"),
    ),
]
Compile = Annotated[
    bool,
    typer.Option("--compile", help="Compile the network (torch.compile).", rich_help_panel=MACHINE),
]
Evaluate = Annotated[
    str | None,
    typer.Option(
        help="After every task, or after the last only: every, last.",
        metavar="WHEN",
        show_default="every",
        rich_help_panel=TRAINING,
        autocompletion=completion.one_of("every", "last"),
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="CPU threads, of each process.", show_default="torch's", rich_help_panel=MACHINE
    ),
]
Devices = Annotated[
    int | None,
    typer.Option(
        help="Share the run among so many devices, or CPU processes.",
        show_default="1",
        rich_help_panel=MACHINE,
    ),
]
Strategy = Annotated[
    str | None,
    typer.Option(
        help="Of several devices: ddp, or ddp-syncbn: BatchNorm over the rows of all of them.",
        metavar="NAME",
        show_default="ddp",
        rich_help_panel=MACHINE,
        autocompletion=completion.one_of("ddp", "ddp-syncbn"),
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="Take the values of a YAML file (a run's config.yaml).",
        metavar="FILE",
        rich_help_panel=FILES,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any field of the configuration, repeatable: --set training.momentum=0.9",
        metavar="FIELD=VALUE",
        rich_help_panel=FILES,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="The run's folder.",
        metavar="FOLDER",
        show_default="one below runs/",
        rich_help_panel=FILES,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace an earlier run there.", rich_help_panel=FILES),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with an unfinished run there, if there is one.",
        rich_help_panel=FILES,
    ),
]
CheckpointEvery = Annotated[
    str | None,
    typer.Option(
        help="Steps (200) or time (30s, 5m) between checkpoints.",
        metavar="INTERVAL",
        show_default="5m",
        rich_help_panel=FILES,
    ),
]
OnNonfinite = Annotated[
    str | None,
    typer.Option(
        help="stop, or skip steps whose loss or gradient is not finite.",
        metavar="WHAT",
        show_default="stop",
        rich_help_panel=TRAINING,
        autocompletion=completion.one_of("stop", "skip"),
    ),
]
Tracker = Annotated[
    list[str] | None,
    typer.Option(
        help="Also log to tensorboard, wandb or mlflow; repeatable.",
        metavar="NAME",
        rich_help_panel=FILES,
        autocompletion=completion.one_of("tensorboard", "wandb", "mlflow"),
    ),
]
Deterministic = Annotated[
    bool | None,
    typer.Option(
        help="Allow only operations that repeat to the bit.",
        show_default="yes on the CPU",
        rich_help_panel=MACHINE,
    ),
]
