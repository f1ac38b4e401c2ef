"""`lider data`: the data sets, and how to get them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from . import completion
from .commands import command, command_group
from .option_types import Json, argument, flag, option
from .output import new_console, print_json

group = command_group(
    "data",
    "lider data list",
    "lider data prepare cifar100",
    help="List data sets; download them, or import your copies.\n\nReads and writes the "
    "data folder: LIDER_DATA, or the user's cache.",
    no_args_is_help=True,
)
Root = Annotated[
    Path | None,
    option("The data folder.", metavar="FOLDER", default="LIDER_DATA, or the user's cache"),
]


@command("lider data list", "lider data list --json", group=group)
def list_(root: Root = None, as_json: Json = False) -> None:
    """List the data sets: whether they are here, size, and terms.

    Reads the data folder; writes nothing.
    """
    from ..report.terminal.catalogues import data_table
    from ..streams.storage.inventory import data_inventory
    from ..streams.storage.location import data_folder

    home = data_folder(root)
    rows = data_inventory(home)
    if as_json:
        print_json({"folder": str(home), "data": rows})
    else:
        new_console().print(data_table(rows))
        print(f"in {home}; get one with: lider data prepare NAME")


@command(
    "lider data prepare cifar100",
    "lider data prepare cifar100 --from cifar-100-python.tar.gz",
    "lider data prepare cub200 --from /data/CUB_200_2011 --unchecked",
    group=group,
)
def prepare(
    name: Annotated[str, argument("The data set (lider data list).", values=completion.data_sets)],
    root: Root = None,
    from_: Annotated[
        Path | None,
        option(
            "Import this archive or folder instead of downloading.",
            names=["--from"],
            default="download",
        ),
    ] = None,
    unchecked: Annotated[
        bool, flag("--unchecked", "Also accept other files, or only some of the images.")
    ] = False,
) -> None:
    """Download or import a data set, check it, and decode it once.

    Reads the publisher's server, or --from. Writes the data set's folder, all at once, and cache/
    into the data folder.
    """
    from ..report.terminal.data_progress import data_progress
    from ..streams.datasets.catalogue import data_set
    from ..streams.storage.location import data_folder
    from ..streams.storage.preparation import decode_data_set
    from ..streams.storage.preparation import prepare as prepare_data_set

    data, home = data_set(name), data_folder(root)
    already = data.find(home) is not None
    with data_progress(new_console(stderr=True)) as report:
        path = prepare_data_set(data.name, home, from_, checked=not unchecked, report=report)
    stream = decode_data_set(data, home)
    train, test = stream.tasks[0].train, stream.tasks[0].test  # one task holds all
    state = "was there already (remove it to prepare it again)" if already else "is ready"
    print(f"{data.title} {state}: {path}, ", end="")
    print(f"{len(train):,} training and {len(test):,} test images of {len(stream.names)} classes")
    variable = "" if root is None else f"LIDER_DATA={home} "
    print(f"use it with: {variable}lider run --benchmark {data.benchmark}")
