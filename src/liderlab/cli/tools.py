"""Commands around the lab: doctor, export, import-mammoth."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .shared import JsonOption, RunArgument, new_console

app = typer.Typer()


@app.command(epilog="Example: lider doctor --json")
def doctor(
    self_test: Annotated[bool, typer.Option(help="Also train a tiny network.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Look whether everything is in place; say what to do about what is not.

    Exit code 0: nothing is wrong; 1: something is.
    """
    from ..experiments.doctor import examine

    findings, console = [], new_console()
    marks = {"fine": "[green]ok[/]", "problem": "[bold red]!![/]", "optional": "[dim]--[/]"}
    for finding in examine(self_test):
        findings.append(finding)
        if not as_json:
            remedy = f" → {finding.remedy}" if finding.remedy else ""
            console.print(
                f"{marks[finding.state]} {finding.what}: ", end="", soft_wrap=True, highlight=False
            )
            console.print(f"{finding.found}{remedy}", soft_wrap=True, highlight=False, markup=False)
    wrong = sum(finding.state == "problem" for finding in findings)
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1, ensure_ascii=False))
    else:
        print(f"{wrong} problem(s)" if wrong else "nothing is wrong (-- is optional)")
    if wrong:
        raise typer.Exit(1)


@app.command(epilog="Example: lider export runs/x --format onnx")
def export(
    run: RunArgument,
    format_: Annotated[
        str, typer.Option("--format", help="torch-export, or onnx.")
    ] = "torch-export",
    out: Annotated[
        Path | None, typer.Option(help="The file (default: in the run's folder).")
    ] = None,
) -> None:
    """Write a run's network as one file that other programs can use without liderlab."""
    from ..errors import unknown
    from ..experiments.export import SUFFIXES
    from ..experiments.export import export as write

    if format_ not in SUFFIXES:
        raise unknown("format", format_, SUFFIXES)
    out = out or run / f"network{SUFFIXES[format_]}"
    network = write(run, out, format_)  # type: ignore[arg-type]
    shape = ", ".join(map(str, network.image_shape))
    print(f"wrote {out}: uint8 pixels (n, {shape}) to scores (n, {len(network.names)})")


@app.command(
    epilog="Example: lider import-mammoth --model er-ace --dataset seq-cifar100 --buffer_size 500",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def import_mammoth(context: typer.Context) -> None:
    """Turn a command line of Mammoth into ours, and say what differs.

    The command goes to standard output, the remarks to standard error.
    """
    from ..experiments.mammoth import translate

    translation = translate(context.args)
    print(translation.command)
    for remark in translation.remarks:
        print(f"note: {remark}", file=sys.stderr)
