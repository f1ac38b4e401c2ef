"""Options and arguments that several commands share, and all those of `lider run`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import UserError
from . import completion as complete

WHAT, LIDER, TRAINING, NETWORK, MACHINE, FILES, ENGINE = (
    "What to run",
    "LiDER",
    "Training",
    "The network",
    "The machine",
    "Files",
    "Where it runs",
)  # headings of --help
Values = complete.Completer | Sequence[str] | None


def option(
    help: str,
    heading: str | None = None,
    *,
    names: Sequence[str] = (),
    metavar: str | None = None,
    default: str | None = None,
    values: Values = None,
    **limits: Any,
) -> Any:
    """An option, for `Annotated`.

    names: by default the parameter's. values: offered on Tab, the default first. default: in words,
    where it is neither that nor the parameter's. limits: min and max.
    """
    if default is None and values and not callable(values):
        default = values[0]
    return typer.Option(
        *names,
        help=help,
        rich_help_panel=heading,
        metavar=metavar,
        show_default=default or True,
        autocompletion=_completer(values),
        **limits,
    )


def flag(name: str, help: str, heading: str | None = None) -> Any:
    """A switch that is off unless it is given."""
    return option(help, heading, names=[name])


def argument(help: str, metavar: str | None = None, values: Values = None) -> Any:
    """An argument, for `Annotated`."""
    return typer.Argument(help=help, metavar=metavar, autocompletion=_completer(values))


def _completer(values: Values) -> complete.Completer | None:
    return values if values is None or callable(values) else complete.one_of(*values)


RunPath = Annotated[Path, argument("A run folder.", "RUN", complete.run_folders)]
Json = Annotated[bool, flag("--json", "Print JSON, and nothing else, to standard output.")]

Preset = Annotated[
    str | None,
    option("An experiment of the paper (lider list presets).", WHAT, values=complete.presets),
]
Scale = Annotated[
    str | None,
    option("Make it smaller: smoke or cpu; paper changes nothing.", WHAT, values=complete.scales),
]
Imports = Annotated[
    list[str] | None,
    option(
        "A Python file that registers methods, benchmarks, … of your own; repeatable.",
        WHAT,
        names=["--import"],
        metavar="FILE",
    ),
]
Benchmark = Annotated[
    str | None,
    option(
        "The benchmark (lider list benchmarks), or folder:PATH.",
        WHAT,
        default="split-digits",
        values=complete.benchmarks,
    ),
]
Method = Annotated[
    str | None,
    option("The method (lider list methods).", WHAT, default="er-ace", values=complete.methods),
]
Regularizer = Annotated[
    list[str] | None,
    option(
        "Add a regularizer (lider list regularizers); repeatable.",
        WHAT,
        metavar="NAME",
        values=complete.regularizers,
    ),
]
Buffer = Annotated[
    int | None, option("Size of the memory, in samples.", WHAT, default="the benchmark's")
]
Tasks = Annotated[
    str | None,
    option(
        "Number of tasks, or of the classes of each: 6, or 50,10,10,10,10,10.",
        WHAT,
        metavar="TASKS",
        default="the benchmark's",
    ),
]
Base = Annotated[
    int | None,
    option("Classes of the first task; the other tasks share the rest.", WHAT, default="a share"),
]
Imbalance = Annotated[
    float | None,
    option("Images of the rarest class per image of the most frequent one.", WHAT, default="1"),
]
Blurry = Annotated[
    float | None, option("Share of the images that go to other tasks.", WHAT, default="0")
]
TaskFree = Annotated[
    bool, flag("--task-free", "Train in one pass, without telling where tasks begin.", WHAT)
]
ORDERS = ("natural", "shuffled")
ClassOrder = Annotated[
    str | None, option("natural, shuffled, or all classes like 3,1,2,0.", WHAT, values=ORDERS)
]

Lider = Annotated[bool, flag("--lider", "Add LiDER (--regularizer lider).", LIDER)]
LiderForm = Annotated[
    str | None,
    option(
        "A set of LiDER's options: paper, released, or tuned (with its own α, β).",
        LIDER,
        metavar="FORM",
        values=("paper", "released", "tuned"),
        default="paper, or the preset's",
    ),
]
LiderAlpha = Annotated[float | None, option("Weight of |λ − c| (Eq. 9).", LIDER, default="0.1")]
LiderBeta = Annotated[float | None, option("Weight of |λ| (Eq. 9).", LIDER, default="0.3")]
LiderOn = Annotated[
    str | None,
    option(
        "The rows that LiDER regularises: replay, stream (ablation), or both.",
        LIDER,
        metavar="ROWS",
        values=("replay", "stream", "both"),
    ),
]
LiderDraw = Annotated[
    str | None,
    option(
        "reuse the method's replay batches, or draw fresh ones (as released).",
        LIDER,
        values=("reuse", "fresh"),
    ),
]
LiderTargets = Annotated[
    Literal["learned", "fixed"] | None,
    option("learned targets, or fixed ones (ablation).", LIDER, metavar="KIND", default="learned"),
]

Epochs = Annotated[int | None, option("Epochs per task.", TRAINING, default="the benchmark's")]
BatchSize = Annotated[
    int | None, option("Samples of the stream per step.", TRAINING, default="the benchmark's")
]
Lr = Annotated[float | None, option("Learning rate.", TRAINING, default="the benchmark's")]
Seed = Annotated[int | None, option("Seed of all random numbers.", TRAINING, default="0")]
Evaluate = Annotated[
    str | None,
    option(
        "Evaluate after every task; the same without FWT (seen); only after the last; or also "
        "every 50 steps (every:50).",
        TRAINING,
        metavar="WHEN",
        values=("every", "seen", "last", "every:50"),
    ),
]
Heads = Annotated[
    str | None,
    option(
        "Classes that compete for a row in training: all, those seen so far, or those of its task.",
        TRAINING,
        values=("all", "seen", "task"),
    ),
]
OnNonfinite = Annotated[
    str | None,
    option(
        "stop at a non-finite loss or gradient, or skip the step.",
        TRAINING,
        metavar="ACTION",
        values=("stop", "skip"),
    ),
]

Backbone = Annotated[
    str | None,
    option(
        "The network (lider list backbones), or timm:NAME, torchvision:NAME.",
        NETWORK,
        default="the benchmark's",
        values=complete.backbones,
    ),
]
Width = Annotated[int | None, option("Width of the network.", NETWORK, default="the network's own")]
Freeze = Annotated[
    str | None,
    option(
        "Parameters that are not trained: all-but-head, or patterns like conv1,layer1.*",
        NETWORK,
        metavar="PATTERNS",
        default="none",
        values=("all-but-head",),
    ),
]
Pretrained = Annotated[
    str | None,
    option(
        "Weights to start from: a file, a run folder, imagenet, or the name of weights that lider "
        "pretrain has kept.",
        NETWORK,
        metavar="WEIGHTS",
        default="none",
        values=complete.weights,
    ),
]

Device = Annotated[
    str | None,
    option("cpu, cuda, cuda:1, …, mps or auto.", MACHINE, values=("cpu", "cuda", "mps", "auto")),
]
MemoryStorage = Annotated[
    str | None,
    option("Where the memory keeps its images: ram, or disk.", MACHINE, values=("ram", "disk")),
]
MemoryDevice = Annotated[
    str | None, option("Device of a memory in RAM.", MACHINE, default="the network's")
]
StreamDevice = Annotated[
    str | None, option("Keep the benchmark's images on this device.", MACHINE, default="the host")
]
Precision = Annotated[
    str | None,
    option(
        "Precision of training: float32, bfloat16 or float16.",
        MACHINE,
        metavar="TYPE",
        values=("float32", "bfloat16", "float16"),
    ),
]
Compile = Annotated[bool, flag("--compile", "Compile the network (torch.compile).", MACHINE)]
Threads = Annotated[
    int | None, option("CPU threads of each process.", MACHINE, default="torch's", min=1, max=1024)
]
Devices = Annotated[
    int | None, option("Devices, or CPU processes, that share the run.", MACHINE, default="1")
]
Strategy = Annotated[
    str | None,
    option(
        "For several devices: ddp, or ddp-syncbn (BatchNorm over the rows of all devices).",
        MACHINE,
        values=("ddp", "ddp-syncbn"),
    ),
]
Deterministic = Annotated[
    bool | None,
    option("Allow only operations that repeat to the bit.", MACHINE, default="yes on the CPU"),
]

Config = Annotated[
    Path | None,
    option("Take the values of a YAML file (a run's config.yaml).", FILES, metavar="FILE"),
]
Set = Annotated[
    list[str] | None,
    option(
        "Set any field of the configuration, repeatable: --set training.momentum=0.9",
        FILES,
        names=["--set"],
        metavar="FIELD=VALUE",
    ),
]
Out = Annotated[
    Path | None, option("The run folder.", FILES, metavar="FOLDER", default="one below runs/")
]
Force = Annotated[bool, flag("--force", "Replace an earlier run in the folder.", FILES)]
Resume = Annotated[
    bool, flag("--resume", "Resume an unfinished run in the folder, if there is one.", FILES)
]
AllowChangedImports = Annotated[
    bool,
    flag("--allow-changed-imports", "Resume although imported files have changed.", FILES),
]
CheckpointEvery = Annotated[
    str | None,
    option(
        "Steps (200) or time (30s, 5m) between checkpoints.",
        FILES,
        metavar="INTERVAL",
        default="5m",
    ),
]
TRACKERS = ("tensorboard", "wandb", "mlflow")
Tracker = Annotated[
    list[str] | None,
    option(
        "Also log to tensorboard, wandb or mlflow; repeatable.",
        FILES,
        default="none",
        values=TRACKERS,
    ),
]

Workers = Annotated[
    int | None, option("Runs at a time.", ENGINE, default="one per core, or per GPU")
]
ENGINES = ("local", "ray", "slurm")
Engine = Annotated[str, option("local (processes here), ray, or slurm.", ENGINE, values=ENGINES)]
Address = Annotated[
    str | None, option("Address of Ray: HOST:PORT, or auto.", ENGINE, default="a new Ray here")
]
Slurm = Annotated[
    list[str] | None,
    option(
        "A parameter of Slurm, repeatable: timeout_min=60, slurm_partition=gpu, …",
        ENGINE,
        metavar="KEY=VALUE",
    ),
]


def given(**options: Any) -> dict[str, Any]:
    """The options that stand on the command line: those that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def assigned(texts: Sequence[str] | None) -> dict[str, Any]:
    """The fields that --set gives, as a layer of the configuration."""
    from ..config.merging import merge
    from ..config.yaml_values import parse_assignment

    layer: dict[str, Any] = {}
    for text in texts or []:
        layer = merge(layer, parse_assignment(text))
    return layer


def check_folder(out: Path) -> None:
    """Refuse an --out that is a file, or lies below one, before any work begins."""
    for path in (out, *out.parents):
        if path.exists() and not path.is_dir():
            raise UserError(f"{path} is a file: choose a folder for --out")
