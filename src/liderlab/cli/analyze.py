"""`lider analyze`: one analysis of the paper on one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..errors import UserError
from . import completion
from .commands import command
from .option_types import Json, RunPath, argument, option
from .output import new_console, print_json


@command("lider analyze guessing-game runs/x", "lider analyze hessian runs/x --scale smoke --json")
def analyze(
    name: Annotated[
        str,
        argument("A study that analyses single runs, like hessian.", values=completion.analyses),
    ],
    run: RunPath,
    scale: Annotated[
        str, option("How thoroughly: smoke, cpu, or paper.", values=completion.scales)
    ] = "cpu",
    out: Annotated[
        Path | None,
        option("Where to write.", metavar="FOLDER", default="analysis/NAME in the run folder"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Analyse one finished run, as the paper's studies do.

    Studies examine its memory, and how smooth, flat and robust its network is. Reads result.json
    and the last checkpoint in RUN, and its data. Writes result.json, table.csv and .md, figure.png
    and .pdf.
    """
    from ..paper.studies import STUDIES
    from ..paper.studies.cases import Request

    if not STUDIES.entry(name).facts.get("analysis"):
        analyses = ", ".join(name for name, _ in completion.analyses(""))
        raise UserError(f"{name} compares several runs; for one run choose {analyses}")
    Request(scale)  # refuse a wrong scale before anything is loaded

    from ..report.study_files import write_analysis
    from ..report.terminal.findings_table import findings_table

    folder = out or run / "analysis" / name
    findings, document = write_analysis(name, run, scale, folder)
    if as_json:
        print_json(document)
        return
    console = new_console()
    console.print(findings_table(findings))
    for note in findings.notes:
        console.print(note)
    print(f"wrote {folder}")
