"""`lider data`: the data sets, and how to get them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from . import completion
from .commands import command, command_group
from .options import Json, argument, flag, option
from .output import new_console, print_json

if TYPE_CHECKING:
    from ..streams.storage.work_progress import Report

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
    from ..streams.storage.location import data_folder

    home = data_folder(root)
    rows = _rows(home)
    if as_json:
        print_json({"folder": str(home), "data": rows})
    else:
        new_console().print(data_table(rows))
        print(f"in {home}; get one with: lider data prepare NAME")


def _rows(home: Path) -> list[dict[str, Any]]:
    from ..streams.datasets.catalogue import DATA_SETS

    rows = []
    for data in DATA_SETS.values():
        path = data.find(home)
        size, images = (None, 0) if path is None else _content(path)
        row = {
            "name": data.name,
            "title": data.title,
            "found": path is not None,
            "path": None if path is None else str(path),
            "complete": path is not None and (not images or images >= data.train + data.test),
            "bytes": size,
            "images": data.images,
            "licence": data.licence,
            "benchmark": data.benchmark,
            "download_bytes": data.download_bytes or None,
            "urls": [remote.url for remote in data.remotes],
            "command": data.command,
        }
        rows.append(row)
    return rows


def _content(folder: Path) -> tuple[int, int]:
    """How many bytes are below a folder, and how many image files."""
    from ..streams.datasets.catalogue import IMAGE_SUFFIXES

    files = [file for file in folder.rglob("*") if file.is_file()]
    images = sum(file.suffix.lower() in IMAGE_SUFFIXES for file in files)
    return sum(file.stat().st_size for file in files), images


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
    from ..streams.datasets.catalogue import data_set
    from ..streams.storage.location import data_folder
    from ..streams.storage.preparation import decode_data_set
    from ..streams.storage.preparation import prepare as bring

    data, home = data_set(name), data_folder(root)
    already = data.find(home) is not None
    with _bar() as report:
        path = bring(data.name, home, from_, checked=not unchecked, report=report)
    stream = decode_data_set(data, home)
    images = sum(len(task.train) + len(task.test) for task in stream.tasks)
    state = "was there already (remove it to prepare it again)" if already else "is ready"
    print(f"{data.title} {state}: {path}, {images:,} images of {len(stream.names)} classes")
    variable = "" if root is None else f"LIDER_DATA={home} "
    print(f"use it with: {variable}lider run --benchmark {data.benchmark}")


@contextmanager
def _bar() -> Iterator[Report | None]:
    """A progress bar in a terminal; elsewhere None, which prints plain lines."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = new_console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        items: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in items:
                items[what] = progress.add_task(what, total=total)
            progress.update(items[what], completed=done)

        yield report
