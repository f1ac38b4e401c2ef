"""`lider study`: a table or figure of the paper, repeated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import RunFailed, UserError
from . import completion
from . import option_types as o
from .commands import command, explain_stop, typed_command
from .option_types import Json, argument, given, option
from .output import new_console, print_json
from .report import write_page

if TYPE_CHECKING:
    from ..paper.studies.study_definition import RunAll
    from ..runs.planned_run import PlannedRun


@command("lider study toy", "lider study poisoning --scale smoke --out studies")
def study(
    name: Annotated[str, argument("The study (lider list studies).", values=completion.studies)],
    scale: Annotated[
        str,
        option(
            "smoke (on split-digits), cpu (smaller), or paper (unchanged).",
            values=completion.scales,
        ),
    ] = "smoke",
    out: Annotated[
        Path, option("Folder of the runs, which all studies share, and results.", metavar="FOLDER")
    ] = Path("studies"),
    seeds: Annotated[int, option("Number of seeds of every run.", min=1)] = 1,
    benchmark: Annotated[
        str | None,
        option(
            "Only the settings on this benchmark; or another benchmark in their place.",
            default="all of the study's",
            values=completion.benchmarks,
        ),
    ] = None,
    lr: Annotated[
        float | None,
        option("Learning rate of all runs; of the matrix, to tune from.", default="of each run"),
    ] = None,
    epochs: Annotated[
        int | None, option("Epochs of every task in all runs.", default="of each run", min=1)
    ] = None,
    set_: Annotated[
        list[str] | None,
        option(
            "Set a field of all runs, repeatable: --set benchmark.train_per_class=500",
            names=["--set"],
            metavar="FIELD=VALUE",
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        option("Of the matrix; repeat it.", default="er-ace, der++", values=completion.methods),
    ] = None,
    regularizers: Annotated[
        list[str] | None,
        option(
            "Of the matrix; repeat it. lider+star: both at once.",
            default="those of the field",
            values=completion.regularizers,
        ),
    ] = None,
    tries: Annotated[
        int | None, option("Tries that tune every cell of the matrix.", default="3", min=1, max=9)
    ] = None,
    budget: Annotated[
        str | None,
        option("equal-steps, equal-passes or equal-seconds: of the matrix.", metavar="BUDGET"),
    ] = None,
    device: o.Device = None,
    threads: o.Threads = None,
    workers: Annotated[
        int | None,
        option("Runs at a time, in processes of their own.", o.MACHINE, default="1", min=1),
    ] = None,
    as_json: Json = False,
) -> None:
    """Repeat a table or figure of the paper, ours beside theirs.

    Reads the data and weights of the paper's settings (at scale smoke, none). Writes the runs into
    runs/ of --out, and result.json, table.csv and .md, figure.png and .pdf, and report.html
    into a folder of the study's name there. Finished runs are not repeated.
    """
    from ..paper.studies import find_study
    from ..paper.studies.cases import Request

    asked = given(benchmark=benchmark, lr=lr, epochs=epochs, device=device, workers=workers)
    asked |= given(set=set_)
    of_matrix = given(methods=methods, regularizers=regularizers, tries=tries, budget=budget)
    chosen = find_study(name)
    if of_matrix and chosen.execute is None:
        raise UserError(
            f"the study {name} has methods and regularisers of its own: leave out "
            f"{' and '.join(f'--{option}' for option in of_matrix)}, or choose the study matrix"
        )
    if not chosen.settings and chosen.execute is None and asked:
        raise UserError(
            f"the study {name} has no runs, only small networks of its own on the CPU: "
            f"leave out {' and '.join(f'--{option}' for option in asked)}"
        )
    device, workers = device or "cpu", workers or 1
    if workers > 1 and threads is None:
        from ..sweeps.engine import threads_each

        threads = threads_each("local", workers)
    request = Request(
        scale,
        seeds,
        benchmark,
        device,
        threads,
        lr,
        epochs,
        changes=tuple(set_ or ()),
        methods=tuple(methods or ()),
        regularizers=tuple(regularizers or ()),
        tries=tries or 3,
        budget=budget or "equal-steps",
    )

    from ..paper.studies.study_execution import run_study
    from ..report.study_files import FILES, write_study
    from ..report.terminal.findings_table import findings_table

    with explain_stop():
        completed = run_study(name, request, out, runner(workers), new_console(stderr=True).print)
    write_study(completed, out / name)
    if shown := completed.tested():
        figure = (out / name / "figure.png").read_bytes()
        write_page(shown, out / name / "report.html", completed.study.title, figure=figure)
    if as_json:
        print_json(completed.document())
    else:
        console = new_console()
        console.print(f"{completed.study.title} ({completed.study.paper})")
        console.print(findings_table(completed.findings))
        for note in completed.findings.notes:
            console.print(note)
        files = [*FILES, *(["report.html"] if completed.runs else [])]
        print(f"wrote {out / name}: {', '.join(files)}")
    if completed.failed:
        raise RunFailed(f"{len(completed.failed)} of {len(completed.runs)} runs failed: see above")


def runner(workers: int) -> RunAll:
    """Runs one after the other in this process, or several at a time in others."""
    return _in_turn if workers == 1 else partial(_in_parallel, workers)


def _in_turn(plans: Sequence[PlannedRun]) -> dict[str, str]:
    from ..paper.studies.study_execution import run_in_turn
    from ..report.terminal.run_progress import ProgressDisplay

    with ProgressDisplay(new_console(stderr=True), len(plans)) as display:
        return run_in_turn(plans, display)


def _in_parallel(workers: int, plans: Sequence[PlannedRun]) -> dict[str, str]:
    from ..report.terminal.sweep_progress import SweepDisplay
    from ..sweeps.scheduler import run_all

    with SweepDisplay(new_console(stderr=True), plans) as display:
        outcomes = run_all(
            plans, workers=workers, retry_failed=True, watch=display, go_on=typed_command()
        )
    return {o.plan.name: o.error or o.state for o in outcomes if o.state != "done"}
