"""`lider data`: what data is where, and how it gets there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import completion
from .help_pages import Group, examples
from .shared import JsonOption, new_console, print_json

if TYPE_CHECKING:
    from ..streams.storage.work_progress import Report

app = typer.Typer(
    help="What data is where; download it, or import what you have.\n\nReads and writes the data "
    "folder: LIDER_DATA, or the user's cache.",
    no_args_is_help=True,
    cls=Group,
    epilog=examples("lider data list", "lider data prepare cifar100"),
)
RootOption = Annotated[
    Path | None,
    typer.Option(
        help="The data folder.", metavar="FOLDER", show_default="LIDER_DATA, or the user's cache"
    ),
]


@app.command("list", epilog=examples("lider data list", "lider data list --json"))
def list_(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List the data sets: whether they are here, size, and terms.

    Reads the data folder; writes nothing.
    """
    from ..streams.storage.location import data_folder

    home = data_folder(root)
    rows = _rows(home)
    if as_json:
        print_json({"folder": str(home), "data": rows})
        return
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "here", "download", "images", "licence"):
        table.add_column(column, style="bold" if column == "name" else None)
    for row in rows:
        here = "no"
        if row["found"]:
            here = f"{'yes' if row['complete'] else 'in part'}, {_size(row['bytes'])}"
        download = _size(row["download_bytes"]) if row["download_bytes"] else "none: --from"
        table.add_row(row["name"], here, download, row["images"], row["licence"])
    console = new_console()
    console.print(table)
    console.print(f"in {home}; get one with: lider data prepare NAME", soft_wrap=True)


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


@app.command(
    epilog=examples(
        "lider data prepare cifar100",
        "lider data prepare cifar100 --from cifar-100-python.tar.gz",
        "lider data prepare cub200 --from /data/CUB_200_2011 --unchecked",
    )
)
def prepare(
    name: Annotated[
        str,
        typer.Argument(
            help="lider data list.", show_default=False, autocompletion=completion.data_sets
        ),
    ],
    root: RootOption = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Import this archive or folder instead of downloading.",
            metavar="PATH",
            show_default="download",
        ),
    ] = None,
    unchecked: Annotated[
        bool,
        typer.Option("--unchecked", help="Also take other files, or only some of the images."),
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
    was = "was there already (remove it to bring it again)" if already else "is ready"
    print(f"{data.title} {was}: {path}, {images:,} images of {len(stream.names)} classes")
    print(f"use it with: {_variable(root, home)}lider run --benchmark {data.benchmark}")


def _variable(root: Path | None, home: Path) -> str:
    return "" if root is None else f"LIDER_DATA={home} "


@contextmanager
def _bar() -> Iterator[Report | None]:
    """A bar in a terminal; plain lines, which are the default, elsewhere."""
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
            item = items.setdefault(what, None)
            if item is None:
                item = items[what] = progress.add_task(what, total=total)
            progress.update(item, completed=done)

        yield report


def _content(folder: Path) -> tuple[int, int]:
    """How many bytes are below a folder, and how many image files."""
    from ..streams.datasets.catalogue import IMAGE_SUFFIXES

    files = [file for file in folder.rglob("*") if file.is_file()]
    images = sum(file.suffix.lower() in IMAGE_SUFFIXES for file in files)
    return sum(file.stat().st_size for file in files), images


def _size(number: int) -> str:
    """
    >>> _size(169_001_437), _size(4_542)
    ('169 MB', '4.54 kB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} B"
