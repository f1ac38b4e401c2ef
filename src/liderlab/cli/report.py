"""Commands that look at several runs: report, runs, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import completion
from .help_pages import LOOK, examples
from .shared import JsonOption, leave_out, new_console, print_json

app = typer.Typer()

RunsArgument = Annotated[
    list[Path],
    typer.Argument(
        help="Runs' folders, or folders that hold some.",
        metavar="RUN",
        show_default=False,
        autocompletion=completion.run_folders,
    ),
]
SideArgument = Annotated[
    Path,
    typer.Argument(
        help="A run's folder, or one that holds its seeds.",
        show_default=False,
        autocompletion=completion.run_folders,
    ),
]


@app.command(
    rich_help_panel=LOOK,
    epilog=examples("lider report runs -o report.html", "lider report runs/x runs/y --no-memory"),
)
def report(
    runs: RunsArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write.", metavar="FILE")
    ] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its heading.")] = "Continual-learning report",
    memory: Annotated[
        bool, typer.Option(help="Show the images in the runs' memories (reads checkpoints).")
    ] = True,
) -> None:
    """Write one HTML page about runs, finished or not.

    It opens offline, in any browser. Reads the runs' folders and changes nothing in them; writes
    --out.
    """
    from rich.text import Text

    from ..report.page.html import write_report
    from ..report.run_records import read_all

    records, complaints = read_all(runs)
    with new_console(stderr=True).status("") as status:
        damaged = write_report(
            records,
            out,
            title=title,
            memory=memory,
            progress=lambda record: status.update(Text(f"reading {record.name}")),
        )
    leave_out([*complaints, *damaged])
    size, shown = out.stat().st_size / 1e6, len(records) - len(damaged)
    new_console().print(
        f"wrote {out}: {shown} run{'s' * (shown != 1)}, {size:.1f} MB",
        soft_wrap=True,
        highlight=False,
    )


@app.command(
    rich_help_panel=LOOK,
    epilog=examples(
        "lider runs",
        "lider runs --where method=er-ace --where lider=yes --where 'faa>70' runs",
        "lider runs --where state=stopped --json",
    ),
)
def runs(
    folder: Annotated[Path, typer.Argument(help="Where to look, at any depth.")] = Path("runs"),
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Only runs for which this holds, repeatable: field=value, also != < <= > >=. "
            "Fields: name, method, benchmark, backbone, buffer, seed, scale, state, lider, "
            "any metric, or any field of the configuration (training.lr).",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List runs: what they are, how far, and how good.

    Reads config.yaml, metrics.jsonl and result.json of every run below FOLDER; writes nothing.
    """
    from ..report.run_records import read_all
    from ..report.terminal.run_list import Condition, facts, listing, select

    conditions = [Condition.parse(text) for text in where or []]
    records, complaints = read_all([folder])
    chosen = select(records, conditions)
    leave_out(complaints)
    if as_json:
        print_json([facts(record) for record in chosen])
    elif chosen:
        new_console().print(listing(chosen))
    else:
        print("no run matches")


@app.command(
    rich_help_panel=LOOK,
    epilog=examples(
        "lider compare runs/er-ace runs/er-ace-lider", "lider compare runs/a runs/b --json"
    ),
)
def compare(a: SideArgument, b: SideArgument, as_json: JsonOption = False) -> None:
    """Compare two runs, or two folders of them seed by seed.

    Prints what differs in their settings, all metrics, and the differences. Reads config.yaml and
    result.json of both sides; writes nothing.
    """
    from ..report.terminal.comparison import Comparison, comparison_tables

    comparison = Comparison.of(a, b)
    leave_out(comparison.left_out)
    if as_json:
        print_json(comparison.as_tree())
        return
    console = new_console()
    for part in comparison_tables(comparison):
        console.print(part)
