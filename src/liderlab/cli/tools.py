"""Commands around the lab: doctor, export, import-mammoth."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from . import completion
from .help_pages import AROUND, START, USE, examples
from .shared import JsonOption, RunArgument, new_console, print_json

app = typer.Typer()


@app.command(rich_help_panel=START, epilog=examples("lider doctor", "lider doctor --json"))
def doctor(
    self_test: Annotated[bool, typer.Option(help="Also train a tiny network.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Look whether everything is in place; say what to do if not.

    Reads the data folder; writes nothing but a run in a temporary folder, which it removes. Exit
    code 0: nothing is wrong; 1: something is.
    """
    from ..runs.doctor import examine

    findings, console = [], new_console()
    marks = {"fine": ("ok", "green"), "problem": ("!!", "bold red"), "optional": ("--", "dim")}
    for finding in examine(self_test):
        findings.append(finding)
        if not as_json:
            remedy = f" → {finding.remedy}" if finding.remedy else ""
            mark, style = marks[finding.state]
            console.print(mark, style=style, end=" ", highlight=False)
            said = f"{finding.what}: {finding.found}{remedy}"
            console.print(said, soft_wrap=True, highlight=False)
    wrong = sum(finding.state == "problem" for finding in findings)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print(f"{wrong} problem(s)" if wrong else "nothing is wrong (-- is optional)")
    if wrong:
        raise typer.Exit(1)


@app.command(
    rich_help_panel=USE,
    epilog=examples("lider export runs/x", "lider export runs/x --format onnx --out net.onnx"),
)
def export(
    run: RunArgument,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="torch-export, or onnx.",
            metavar="FORMAT",
            autocompletion=completion.one_of("torch-export", "onnx"),
        ),
    ] = "torch-export",
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file.", metavar="FILE", show_default="network.pt2 or .onnx in the run's"
        ),
    ] = None,
) -> None:
    """Write a run's network as a file for other programs.

    Reads result.json and the last checkpoint in RUN; writes --out, which takes uint8 pixels, gives
    scores, holds the names of the classes, and needs no liderlab: docs/using.md.
    """
    from ..errors import unknown
    from ..runs.export import SUFFIXES
    from ..runs.export import export as write

    if format_ not in SUFFIXES:
        raise unknown("format", format_, SUFFIXES)
    out = out or run / f"network{SUFFIXES[format_]}"
    network = write(run, out, format_)  # type: ignore[arg-type]
    shape = ", ".join(map(str, network.image_shape))
    print(f"wrote {out}: uint8 pixels (n, {shape}) to scores (n, {len(network.names)})")


@app.command(
    rich_help_panel=AROUND,
    epilog=examples(
        "lider import-mammoth --model er-ace --dataset seq-cifar100 --buffer_size 500",
    ),
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def import_mammoth(context: typer.Context) -> None:
    """Turn a command line of Mammoth into ours; say what differs.

    Takes the options of Mammoth's main.py as they are. Reads and writes no files. Our command goes
    to standard output, the remarks to standard error.
    """
    from ..config.mammoth_commands import translate

    translation = translate(context.args)
    print(translation.command)
    for remark in translation.remarks:
        print(f"note: {remark}", file=sys.stderr)
