"""`lider runs`: a list of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .commands import command
from .option_types import Json, argument, option
from .output import new_console, print_json, report_damaged


@command(
    "lider runs",
    "lider runs --where method=er-ace --where lider=yes --where 'faa>70' runs",
    "lider runs --where state=stopped --json",
)
def runs(
    folder: Annotated[Path, argument("Where to look, at any depth.")] = Path("runs"),
    where: Annotated[
        list[str] | None,
        option(
            "Only runs that meet this condition, repeatable: field=value, also != < <= > >=. "
            "Fields: name, method, benchmark, backbone, buffer, seed, scale, state, lider, "
            "any metric, or any field of the configuration (training.lr).",
            metavar="CONDITION",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List runs with their method, state and accuracy.

    Reads config.yaml and result.json of every run below FOLDER; writes nothing.
    """
    from ..report.run_records import read_all
    from ..report.terminal.run_filter import Condition, select
    from ..report.terminal.run_list import run_list

    conditions = [Condition.parse(text) for text in where or []]
    records, damaged = read_all([folder])
    chosen = select(records, conditions)
    report_damaged(damaged)
    if as_json:
        print_json([record.facts() for record in chosen])
    elif chosen:
        new_console().print(run_list(chosen))
    else:
        print("no run matches")
