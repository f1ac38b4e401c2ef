"""`lider bench`: how fast it is here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, unknown
from . import completion
from .help_pages import AROUND, examples
from .shared import JsonOption, new_console, print_json

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer()
CLOCKS = ("wall", "cpu")
NAMES = (
    "resnet18-64",
    "resnet18-16",
    "efficientnet-b2",
    "fresh",
    "jacobian",
    "tokens",
    "curvature",
    "herding",
)


@app.command(
    rich_help_panel=AROUND,
    epilog=examples(
        "lider bench herding --quick", "lider bench resnet18-16 --threads 2 --out bench.json"
    ),
)
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"{', '.join(NAMES)}; all by default.",
            show_default=False,
            autocompletion=completion.one_of(*NAMES),
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="CPU threads.", show_default="torch's")
    ] = None,
    clock: Annotated[
        str,
        typer.Option(
            help="wall, or cpu: processor time, for machines with neighbours.",
            metavar="CLOCK",
            autocompletion=completion.one_of(*CLOCKS),
        ),
    ] = "wall",
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes: whether it works, not how fast it is.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write JSON here, and do not measure again what is there already.",
            metavar="FILE",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Measure all of it again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure what LiDER, the loop and curvature regularisers cost.

    Contestants take turns; ratios are medians over the rounds, with the middle half of them. Reads
    no data; writes --out, if given.
    """
    if clock not in CLOCKS:
        raise unknown("clock", clock, CLOCKS)
    from ..bench.measures import MEASURES, load, machine, measure
    from ..files import writable_folder

    chosen = list(names or MEASURES)
    for name in chosen:
        if name not in MEASURES:
            raise unknown("measure", name, MEASURES)
    where = {**machine(threads), "clock": clock, "quick": quick}
    report = {"machine": where, "measures": {} if force else _earlier(out, where)}
    if out is not None:
        writable_folder(out.parent)
    for name in chosen:
        if name not in report["measures"]:
            new_console(stderr=True).print(f"measuring {name}", highlight=False)
            before = load()
            found = measure(name, quick=quick, clock="cpu" if clock == "cpu" else "wall")
            report["measures"][name] = {**found, "load": [before, load()]}
            _write(out, report)
    if as_json:
        print_json(report)
        return
    console = new_console()
    for name in chosen:
        console.print(_table(report["measures"][name]))
    console.print(_where(where), highlight=False, soft_wrap=True)


def _earlier(out: Path | None, where: dict[str, Any]) -> dict[str, Any]:
    """What an earlier, perhaps interrupted, call has measured under the same conditions."""
    if out is None or not out.exists():
        return {}
    try:
        report = json.loads(out.read_text(encoding="utf-8"))
        same = report["machine"] == where
        measures = dict(report["measures"])
        for found in measures.values():
            _table(found)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise UserError(f"{out} is no report of lider bench: choose another --out") from None
    if not same:
        raise UserError(
            f"{out} was measured under other conditions: choose another --out, or --force"
        )
    return measures


def _write(out: Path | None, report: dict[str, Any]) -> None:
    from ..files import write_atomically

    if out is not None:
        text = json.dumps(report, indent=1, ensure_ascii=False)
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(out, f"{text}\n".encode())
        except OSError as error:
            raise UserError(f"cannot write {out}: {error.strerror or error}") from None


def _table(found: dict[str, Any]) -> Table:
    from rich.table import Table

    title = f"{found['name']}: {found['summary']}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("ratio of", min_width=24)
    for column in ("ms", "ratio", "middle half", "limit"):
        table.add_column(column, justify="right")
    table.add_column("")
    for row in found["ratios"]:
        times = [found["milliseconds"][row[side]] for side in ("above", "below")]
        table.add_row(
            f"{row['above']} / {row['below']}",
            " / ".join(f"{time:.1f}" for time in times),
            f"{row['value']:.3f}",
            f"{row['low']:.3f}…{row['high']:.3f}",
            _limit(row),
            {None: "", True: "met", False: "missed"}[row["met"]],
        )
    return table


def _limit(row: dict[str, Any]) -> str:
    if row["most"] is not None:
        return f"≤ {row['most']:.2f}"
    return "–" if row["least"] is None else f"≥ {row['least']:.1f}"


def _where(where: dict[str, Any]) -> str:
    return (
        f"{where['processor']}, {where['cores']} cores, {where['threads']} thread(s), "
        f"{where['clock']} clock; torch {where['torch']}, Python {where['python']}, "
        f"liderlab {where['liderlab']}; {where['platform']}"
    )
