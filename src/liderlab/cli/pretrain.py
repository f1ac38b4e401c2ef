"""`lider pretrain`: weights for other runs to start from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from ..errors import RunFailed, Stopped
from ..files import checksum
from . import completion
from . import option_types as o
from .commands import command, typed_command
from .option_types import assigned, flag, given, option
from .run import train


@command(
    "lider pretrain --benchmark split-tinyimagenet --size 32",
    "lider pretrain --benchmark synthetic --out w.pt",
    "lider pretrain --benchmark synthetic --out w.pt --resume",
)
def pretrain(
    benchmark: Annotated[
        str,
        option("The benchmark (lider list benchmarks).", o.WHAT, values=completion.benchmarks),
    ] = "split-tinyimagenet",
    size: Annotated[
        int | None, option("Side of the images.", o.WHAT, default="32, or the benchmark's")
    ] = None,
    scale: o.Scale = None,
    imports: o.Imports = None,
    backbone: Annotated[
        str, option("The network (lider list backbones).", o.NETWORK, values=completion.backbones)
    ] = "resnet18",
    width: o.Width = None,
    epochs: Annotated[int | None, option("Epochs.", o.TRAINING, default="50")] = None,
    batch_size: Annotated[int | None, option("Samples per step.", o.TRAINING, default="64")] = None,
    lr: Annotated[float | None, option("Learning rate.", o.TRAINING, default="0.1")] = None,
    seed: o.Seed = None,
    device: o.Device = None,
    threads: o.Threads = None,
    set_: o.Set = None,
    out: Annotated[
        str | None,
        option(
            "A file, or a name to keep the weights under.",
            o.FILES,
            metavar="NAME",
            default="from benchmark and backbone",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        option(
            "The folder of the training run.",
            o.FILES,
            metavar="FOLDER",
            default="runs/pretrain-NAME",
        ),
    ] = None,
    force: Annotated[
        bool,
        flag(
            "--force",
            "Replace weights of that name and, without --resume, an earlier run.",
            o.FILES,
        ),
    ] = False,
    resume: o.Resume = False,
) -> None:
    """Train weights for other runs to start from.

    Trains on all tasks of a benchmark at once, by the paper's recipe. Reads the benchmark's data.
    Writes a run folder (--run), and the weights: the file --out, or weights/NAME.pt in the data
    folder. Use them with: lider run --pretrained NAME_OR_FILE, which takes their backbone.
    """
    from ..config.weight_names import is_file_name, kept_weights
    from ..runs.pretrain import (
        check_target,
        default_name,
        export_weights,
        pretraining,
        same_images,
    )

    layer = {
        "benchmark": given(name=benchmark, size=size),
        "backbone": given(name=backbone, width=width),
        "training": given(epochs=epochs, batch_size=batch_size, lr=lr),
        **given(scale=scale, imports=imports or None, seed=seed, device=device, threads=threads),
    }
    config = pretraining(layer, assigned(set_))
    out = out or default_name(config)
    path = Path(out) if is_file_name(out) else kept_weights(out)
    run = run or Path("runs") / f"pretrain-{path.stem}"
    check_target(out, path, run, replace=force, resume=resume)
    with _same_command_writes_weights():
        leads = train(config, run, "resume" if resume else "replace" if force else None)
    if leads:
        export_weights(run, path, replace=force)
        print(f"wrote {path}, SHA-256 {checksum(path)}")
        print("use it, here on the same images, with:")
        print(f"  {shlex.join(['lider', 'run', *same_images(config), '--pretrained', out])}")


@contextmanager
def _same_command_writes_weights() -> Iterator[None]:
    """Tell a user whose run stops to repeat this command: `lider resume` writes no weights."""
    again = typed_command()
    again += "" if "--resume" in again.split() else " --resume"
    try:
        yield
    except Stopped as stopped:
        raise Stopped(stopped.exit_code - 128, "", again) from None
    except RunFailed as error:
        raise RunFailed(f"{error}; afterwards, for the weights: {again}") from None
