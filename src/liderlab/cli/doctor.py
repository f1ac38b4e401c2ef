"""`lider doctor`: whether everything is in place."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from .commands import command
from .option_types import Json, option
from .output import new_console, print_json

MARKS = {"fine": ("ok", "green"), "problem": ("!!", "bold red"), "optional": ("--", "dim")}


@command("lider doctor", "lider doctor --json")
def doctor(
    self_test: Annotated[bool, option("Also train a tiny network.")] = True, as_json: Json = False
) -> None:
    """Check that everything is in place; say what to do if not.

    Reads the data folder; writes only a run in a temporary folder, which it removes. Exit code 0:
    nothing is wrong; 1: something is.
    """
    from ..runs.doctor import examine

    findings, console = [], new_console()
    for finding in examine(self_test):
        findings.append(finding)
        if not as_json:
            mark, style = MARKS[finding.state]
            remedy = f" → {finding.remedy}" if finding.remedy else ""
            console.print(mark, style=style, end=" ")
            console.print(f"{finding.what}: {finding.found}{remedy}", soft_wrap=True)
    problems = sum(finding.state == "problem" for finding in findings)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print(f"{problems} problem(s)" if problems else "nothing is wrong (-- is optional)")
    if problems:
        raise typer.Exit(1)
