"""Commands about the paper's tables and figures: study, analyze."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import RunFailed, Stopped, UserError
from . import completion
from .help_pages import PAPER, examples
from .shared import (
    AGAIN,
    JsonOption,
    RunArgument,
    given,
    leave_out,
    new_console,
    print_json,
    this_command,
)

if TYPE_CHECKING:
    from ..paper.studies.study_definition import RunAll
    from ..paper.studies.study_execution import CompletedStudy
    from ..runs.planned_run import PlannedRun

app = typer.Typer()
ScaleOption = Annotated[
    str,
    typer.Option(
        help="smoke (on split-digits), cpu (smaller), or paper (as it is).",
        metavar="SCALE",
        autocompletion=completion.scales,
    ),
]


@app.command(
    rich_help_panel=PAPER,
    epilog=examples("lider study toy", "lider study poisoning --scale smoke --out studies"),
)
def study(
    name: Annotated[
        str,
        typer.Argument(
            help="lider list studies.", show_default=False, autocompletion=completion.studies
        ),
    ],
    scale: ScaleOption = "smoke",
    out: Annotated[
        Path,
        typer.Option(help="Where runs (shared by all studies) and results go.", metavar="FOLDER"),
    ] = Path("studies"),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds of every run.")] = 1,
    benchmark: Annotated[
        str | None,
        typer.Option(
            help="Only the settings on this benchmark; or another one, in their place.",
            metavar="NAME",
            show_default="all of the study's",
            autocompletion=completion.benchmarks,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, cuda, cuda:1, …, mps or auto.",
            metavar="DEVICE",
            show_default="cpu",
            autocompletion=completion.one_of("cpu", "cuda", "mps", "auto"),
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="CPU threads of a run.", show_default="torch's"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time, in processes of their own.", show_default="1"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Repeat a table or figure of the paper, ours beside theirs.

    Reads the data and weights of the paper's settings (at scale smoke, none). Writes the runs into
    runs/ of --out, and result.json, table.csv and .md, figure.png and .pdf, and report.html
    into a folder of the study's name there. What has been run is not run again.
    """
    from ..paper.studies import find_study
    from ..paper.studies.cases import Request

    asked = given(benchmark=benchmark, device=device, workers=workers)
    if not find_study(name).settings and asked:
        raise UserError(
            f"the study {name} has no runs, only small networks of its own on the CPU: "
            f"leave out {' and '.join(f'--{option}' for option in asked)}"
        )
    device, workers = device or "cpu", workers or 1
    if workers > 1 and threads is None:
        from ..sweeps.engine import threads_each

        threads = threads_each("local", workers)
    request = Request(scale, seeds, benchmark, device, threads)

    from ..paper.studies.study_execution import run_study
    from ..report.terminal.study_tables import FILES, as_table, write_study

    err = new_console(stderr=True)
    try:
        conducted = run_study(
            name, request, out, runner(workers), lambda text: err.print(text, highlight=False)
        )
    except Stopped as stopped:
        raise stopped.saying(AGAIN) from None
    write_study(conducted, out / name)
    _report(conducted, out / name / "report.html")
    if as_json:
        print_json(conducted.document())
    else:
        console = new_console()
        console.print(f"{conducted.study.title} ({conducted.study.paper})", highlight=False)
        console.print(as_table(conducted.findings))
        for note in conducted.findings.notes:
            console.print(note, highlight=False)
        wrote = ", ".join([*FILES, *(["report.html"] if conducted.runs else [])])
        console.print(f"wrote {out / name}: {wrote}", soft_wrap=True, highlight=False)
    if conducted.failed:
        raise RunFailed(f"{len(conducted.failed)} of {len(conducted.runs)} runs failed: see above")


def runner(workers: int) -> RunAll:
    """One after the other, or several at a time."""
    return _in_turn if workers == 1 else partial(_side_by_side, workers)


def _in_turn(plans: Sequence[PlannedRun]) -> dict[str, str]:
    """One after the other, under one bar."""
    from ..paper.studies.study_execution import run_in_turn
    from ..report.terminal.progress import ProgressDisplay

    with ProgressDisplay(new_console(stderr=True), len(plans)) as display:
        return run_in_turn(plans, display)


def _side_by_side(workers: int, plans: Sequence[PlannedRun]) -> dict[str, str]:
    """Several at a time, as in a sweep."""
    from ..report.terminal.sweep_progress import SweepDisplay
    from ..sweeps.scheduler import run_all

    with SweepDisplay(new_console(stderr=True), plans) as display:
        outcomes = run_all(
            plans, workers=workers, retry_failed=True, watch=display, go_on=this_command()
        )
    return {o.plan.name: o.error or o.state for o in outcomes if o.state != "done"}


def _report(conducted: CompletedStudy, file: Path) -> None:
    """The page about the study's runs; a study without runs has none."""
    from ..report.page.html import write_report
    from ..report.run_records import read_all

    if folders := [plan.folder for plan in conducted.runs if plan.name not in conducted.failed]:
        records, damaged = read_all(folders)
        damaged += write_report(records, file, title=conducted.study.title, memory=False)
        leave_out(damaged)


@app.command(
    rich_help_panel=PAPER,
    epilog=examples(
        "lider analyze guessing-game runs/x", "lider analyze hessian runs/x --scale smoke --json"
    ),
)
def analyze(
    name: Annotated[
        str,
        typer.Argument(
            help="A study that looks into runs, like hessian.",
            show_default=False,
            autocompletion=completion.analyses,
        ),
    ],
    run: RunArgument,
    scale: Annotated[
        str,
        typer.Option(
            help="How thoroughly: smoke, cpu, or paper.",
            metavar="SCALE",
            autocompletion=completion.scales,
        ),
    ] = "cpu",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write.", metavar="FOLDER", show_default="analysis/NAME in the run's"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look into one finished run, as the paper's studies do.

    What is in its memory, how smooth, how flat, how robust it is. Reads result.json and the last
    checkpoint in RUN, and its data. Writes result.json,
    table.csv and .md, figure.png and .pdf.
    """
    from ..paper.studies import STUDIES
    from ..paper.studies.cases import Request

    if not STUDIES.entry(name).facts.get("analysis"):
        looking = [other for other, entry in STUDIES.items() if entry.facts.get("analysis")]
        raise UserError(f"{name} compares runs; one run can be analysed by {', '.join(looking)}")
    Request(scale)  # a wrong scale is said before anything is loaded

    from ..paper.studies.single_run_analysis import analyze_run
    from ..report.terminal.study_tables import as_table, write_findings

    findings, figure, document = analyze_run(name, run, scale)
    folder = out or run / "analysis" / name
    title = f"# {document['title']}\n\nThe run {run}.\n\n"
    write_findings(document, title, findings, figure, folder)
    if as_json:
        print_json(document)
        return
    console = new_console()
    console.print(as_table(findings))
    for note in findings.notes:
        console.print(note, highlight=False)
    console.print(f"wrote {folder}", soft_wrap=True, highlight=False)


def list_studies(as_json: bool) -> None:
    """The studies, how many runs they need and about what they cost, at every scale."""
    from rich.table import Table

    from ..config.scale import SCALES
    from ..paper.studies import STUDIES, find_study
    from ..paper.studies.cases import Request
    from ..paper.studies.cost_estimate import estimate_cost

    costs = {
        name: {scale: estimate_cost(find_study(name), Request(scale)) for scale in SCALES}
        for name in STUDIES
    }
    if as_json:
        tree = [
            {
                "name": name,
                "summary": entry.summary,
                "paper": find_study(name).paper,
                "analysis": bool(entry.facts.get("analysis")),
                "estimate": {scale: vars(cost) for scale, cost in costs[name].items()},
            }
            for name, entry in STUDIES.items()
        ]
        print_json(tree)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("study", style="bold", no_wrap=True)
    for scale in SCALES:
        table.add_column(scale, justify="right", no_wrap=True)
    table.add_column("")
    for name, entry in STUDIES.items():
        cells = [f"{cost.runs} in {_duration(cost.seconds)}" for cost in costs[name].values()]
        table.add_row(
            name, *(cells if costs[name]["paper"].runs else ["seconds"] * 3), entry.summary
        )
    console = new_console()
    console.print(table)
    console.print(
        "runs and their time per seed on one CPU core: an estimate from counted steps and a "
        "measured time per image; "
        "what is there already, or shared with another study, is not repeated",
        highlight=False,
    )


def _duration(seconds: float) -> str:
    """
    >>> _duration(40), _duration(5400), _duration(9e6)
    ('40 s', '1.5 h', '104 d')
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"
    return f"{max(1, round(seconds))} s"
