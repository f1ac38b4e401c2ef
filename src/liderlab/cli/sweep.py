"""`lider sweep`: many runs from one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import completion
from .help_pages import MANY, examples
from .shared import JsonOption, leave_out, new_console, print_json, refuse_file, this_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..runs.planned_run import PlannedRun

app = typer.Typer()

ENGINES = "Where it runs"  # among the options
WorkersOption = Annotated[
    int | None,
    typer.Option(
        help="Runs at a time.", show_default="one per core, or per GPU", rich_help_panel=ENGINES
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        help="local (processes here), ray, or slurm.",
        metavar="ENGINE",
        rich_help_panel=ENGINES,
        autocompletion=completion.one_of("local", "ray", "slurm"),
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        help="Ray's: HOST:PORT, or auto.",
        metavar="ADDRESS",
        show_default="a new Ray here",
        rich_help_panel=ENGINES,
    ),
]
SlurmOption = Annotated[
    list[str] | None,
    typer.Option(
        "--slurm",
        help="For Slurm, repeatable: timeout_min=60, slurm_partition=gpu, …",
        metavar="KEY=VALUE",
        rich_help_panel=ENGINES,
    ),
]


@app.command(
    rich_help_panel=MANY,
    epilog=examples(
        "lider sweep sweep.yaml --dry-run",
        "lider sweep sweep.yaml --out runs/sweep --workers 4",
        "lider sweep sweep.yaml --engine slurm --slurm timeout_min=240",
    ),
)
def sweep(
    file: Annotated[
        Path, typer.Argument(help="What to vary, in YAML: docs/scaling.md.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The sweep's folder.",
            metavar="FOLDER",
            show_default="runs/ and the file's name",
        ),
    ] = None,
    workers: WorkersOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    slurm: SlurmOption = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also go on with runs that failed earlier.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and list all runs; start none.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run every combination of values that a file describes.

    Skips what is done, and goes on with what is begun. Reads FILE, and what its runs read. Writes
    runs/ (a folder like lider run's for each), summary.csv, runs.csv and report.html into --out.
    Exit code 1 if a run failed.
    """
    from ..config.yaml_values import read_yaml
    from ..files import writable_folder
    from ..report.page.html import write_report
    from ..report.run_records import read_all
    from ..report.terminal.sweep_progress import SweepDisplay, sweep_table
    from ..sweeps.engine import check_engine, default_workers, make_engine, threads_each
    from ..sweeps.scheduler import run_all
    from ..sweeps.summary import group_rows, run_rows, write_csv
    from ..sweeps.sweep_file import check_runs, read_sweep

    check_engine(engine, workers, address, slurm)
    tree = read_yaml(file)
    out = out or Path("runs") / file.stem
    refuse_file(out)
    base = tree.get("base")
    device = base.get("device") if isinstance(base, dict) else None
    if engine == "local":
        workers = workers or default_workers(device)
    runs = read_sweep(tree, out, threads_each(engine, workers or 1))
    check_runs(runs, None if engine == "local" else "cpu")
    plans = [run.plan for run in runs]
    if dry_run:
        _list_plans(plans, as_json)
        return
    writable_folder(out)
    chosen = make_engine(engine, workers, address, slurm, out)
    with SweepDisplay(new_console(stderr=True), plans) as display:
        outcomes = run_all(
            plans,
            engine=chosen,
            retry_failed=retry_failed,
            watch=display,
            go_on=this_command(),
        )
    rows = run_rows(runs, outcomes)
    groups = group_rows(runs, rows)
    write_csv(out / "runs.csv", rows)
    write_csv(out / "summary.csv", groups)
    wrote = [out / "summary.csv", out / "runs.csv"]
    done = [plan.folder for plan, row in zip(plans, rows, strict=True) if row["state"] == "done"]
    if done:
        wrote.append(out / "report.html")
        records, damaged = read_all(done)
        title = f"The sweep {out.name}"
        leave_out([*damaged, *write_report(records, wrote[-1], title=title, memory=False)])
    failed = [row for row in rows if row["state"] == "failed"]
    if as_json:
        print_json({"groups": groups, "runs": rows})
        raise typer.Exit(1 if failed else 0)
    console = new_console()
    console.print(sweep_table(groups))
    for row in failed[:10]:
        console.print(f"failed: {row['run']}: {row['error']}", highlight=False, markup=False)
    console.print(
        f"{len(rows) - len(failed)} of {len(rows)} runs done; "
        f"wrote {', '.join(map(str, wrote[:-1]))} and {wrote[-1]}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    if failed:
        console.print("try the failed ones again with --retry-failed", highlight=False)
        raise typer.Exit(1)


def _list_plans(plans: Sequence[PlannedRun], as_json: bool) -> None:
    if as_json:
        print_json([{"name": plan.name, "folder": str(plan.folder)} for plan in plans])
    else:
        print("\n".join(plan.name for plan in plans))
