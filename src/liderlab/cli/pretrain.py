"""`lider pretrain`: weights for other runs to start from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ..errors import RunFailed, Stopped
from . import completion
from .help_pages import TRAIN, examples
from .shared import DeviceOption, SetOption, given, new_console, this_command
from .training_commands import assigned, train

app = typer.Typer()


@app.command(
    rich_help_panel=TRAIN,
    epilog=examples(
        "lider pretrain --benchmark split-tinyimagenet --size 32",
        "lider pretrain --benchmark synthetic --out w.pt",
        "lider pretrain --benchmark synthetic --out w.pt --resume",
    ),
)
def pretrain(
    benchmark: Annotated[
        str,
        typer.Option(
            help="What to learn: lider list benchmarks.",
            metavar="NAME",
            autocompletion=completion.benchmarks,
        ),
    ] = "split-tinyimagenet",
    size: Annotated[
        int | None, typer.Option(help="Side of the images.", show_default="32, or the benchmark's")
    ] = None,
    backbone: Annotated[
        str,
        typer.Option(
            help="Network: lider list backbones.",
            metavar="NAME",
            autocompletion=completion.backbones,
        ),
    ] = "resnet18",
    width: Annotated[
        int | None, typer.Option(help="The network's width.", show_default="the network's own")
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Make it smaller: smoke or cpu.",
            metavar="SCALE",
            autocompletion=completion.scales,
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs.", show_default="50")] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Samples per step.", show_default="64")
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.", show_default="0.1")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of everything random.", show_default="0")
    ] = None,
    device: DeviceOption = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads.", show_default="torch's")
    ] = None,
    set_: SetOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="A file, or a name to keep the weights under.",
            metavar="NAME",
            show_default="after what is trained",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the run that trains.",
            metavar="FOLDER",
            show_default="runs/pretrain-NAME",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace weights of that name, and (without --resume) an earlier run."
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished run there, if there is one.")
    ] = False,
) -> None:
    """Train weights for other runs to start from.

    Trains on all of a benchmark at once, by the paper's recipe. Reads the benchmark's data. Writes
    a run's folder (--run), and the weights: the file --out, or weights/NAME.pt in the data folder.
    Use them with: lider run --pretrained NAME_OR_FILE
    """
    from ..config.weight_names import is_file_name, kept_weights
    from ..runs.pretrain import check_place, export_weights, name_of, pretraining

    options = {
        "benchmark": given(name=benchmark, size=size),
        "backbone": given(name=backbone, width=width),
        "training": given(epochs=epochs, batch_size=batch_size, lr=lr),
        **given(scale=scale, seed=seed, device=device, threads=threads),
    }
    config = pretraining(options, assigned(set_))
    out = out or name_of(config)
    path = Path(out) if is_file_name(out) else kept_weights(out)
    run = run or Path("runs") / f"pretrain-{path.stem}"
    check_place(out, path, run, replace=force, resume=resume)
    with _advice():
        leads = train(config, run, "resume" if resume else "replace" if force else None)
    if not leads:
        return
    export_weights(run, path, replace=force)
    new_console().print(
        f"wrote {path}; use it with: lider run --pretrained {shlex.quote(out)}",
        soft_wrap=True,
        highlight=False,
    )


@contextmanager
def _advice() -> Iterator[None]:
    """A run that `lider resume` finishes leaves no weights: only this command writes them."""
    again = this_command()
    again += "" if "--resume" in again.split() else " --resume"
    try:
        yield
    except Stopped as stopped:
        raise Stopped(stopped.exit_code - 128, "", again) from None
    except RunFailed as error:
        raise RunFailed(f"{error}; afterwards, for the weights: {again}") from None
