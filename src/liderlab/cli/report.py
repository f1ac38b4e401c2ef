"""`lider report`: one HTML page about runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from . import completion
from .commands import command
from .option_types import argument, option
from .output import new_console, report_damaged


@command("lider report runs -o report.html", "lider report runs/x runs/y --no-memory")
def report(
    runs: Annotated[
        list[Path],
        argument("Run folders, or folders that hold some.", "RUN", completion.run_folders),
    ],
    out: Annotated[
        Path, option("The file to write.", names=["--out", "-o"], metavar="FILE")
    ] = Path("report.html"),
    title: Annotated[str, option("Heading of the page.")] = "Continual-learning report",
    memory: Annotated[
        bool, option("Show the images in the runs' memories (reads checkpoints).")
    ] = True,
) -> None:
    """Write one HTML page about runs, finished or not.

    It opens offline, in any browser. Reads the run folders and changes nothing in them; writes
    --out.
    """
    from rich.text import Text

    from ..report.page.html import write_report
    from ..report.run_records import read_all

    records, damaged = read_all(runs)
    with new_console(stderr=True).status("") as status:
        unreadable = write_report(
            records,
            out,
            title=title,
            memory=memory,
            progress=lambda record: status.update(Text(f"reading {record.name}")),
        )
    report_damaged([*damaged, *unreadable])
    size, shown = out.stat().st_size / 1e6, len(records) - len(unreadable)
    print(f"wrote {out}: {shown} run{'s' * (shown != 1)}, {size:.1f} MB")


def write_page(
    folders: Sequence[Path],
    file: Path,
    title: str,
    memory: bool = False,
    figure: bytes | None = None,
) -> None:
    """Write the page about the runs of another command; name the damaged ones it leaves out."""
    from ..report.page.html import write_report
    from ..report.run_records import read_all

    records, damaged = read_all(folders)
    left_out = write_report(records, file, title=title, memory=memory, figure=figure)
    report_damaged([*damaged, *left_out])
