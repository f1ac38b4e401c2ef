"""`lider sweep`: many runs from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import option_types as o
from .commands import command, typed_command
from .option_types import Json, argument, check_folder, flag, option
from .output import new_console, print_json, report_damaged


@command(
    "lider sweep sweep.yaml --dry-run",
    "lider sweep sweep.yaml --out runs/sweep --workers 4",
    "lider sweep sweep.yaml --engine slurm --slurm timeout_min=240",
)
def sweep(
    file: Annotated[Path, argument("The values to vary, in YAML: docs/scaling.md.")],
    out: Annotated[
        Path | None,
        option("The sweep's folder.", metavar="FOLDER", default="runs/ and the file's name"),
    ] = None,
    workers: o.Workers = None,
    engine: o.Engine = "local",
    address: o.Address = None,
    slurm: o.Slurm = None,
    retry_failed: Annotated[
        bool, flag("--retry-failed", "Also resume runs that failed earlier.")
    ] = False,
    dry_run: Annotated[
        bool, flag("--dry-run", "Check and list all runs, without starting any.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run every combination of values that a file describes.

    Skips finished runs and resumes unfinished ones. Reads FILE, and the data of its runs.
    Writes runs/ (one run folder for each), summary.csv, runs.csv and report.html into --out. Exit
    code 1 if a run failed.
    """
    from ..api.many_runs import plan_sweep, summarise_sweep
    from ..config.yaml_values import read_yaml
    from ..files import writable_folder
    from ..report.terminal.result_tables import sweep_table
    from ..report.terminal.sweep_progress import SweepDisplay
    from ..sweeps.engine import check_engine, make_engine
    from ..sweeps.scheduler import run_all

    check_engine(engine, workers, address, slurm)
    tree = read_yaml(file)
    out = out or Path("runs") / file.stem
    check_folder(out)
    runs, workers = plan_sweep(tree, out, workers, engine)
    plans = [run.plan for run in runs]
    if dry_run:
        if as_json:
            print_json([{"name": plan.name, "folder": str(plan.folder)} for plan in plans])
        else:
            print("\n".join(plan.name for plan in plans))
        return
    writable_folder(out)
    chosen = make_engine(engine, workers, address, slurm, out)
    with SweepDisplay(new_console(stderr=True), plans) as display:
        outcomes = run_all(
            plans,
            engine=chosen,
            retry_failed=retry_failed,
            watch=display,
            go_on=typed_command(),
        )
    found = summarise_sweep(runs, outcomes, out)
    report_damaged(found.left_out)
    groups, rows, failed = found.summary, found.rows, found.failed
    wrote = ["summary.csv", "runs.csv", *(["report.html"] if found.finished else [])]
    if as_json:
        print_json({"groups": groups, "runs": rows})
    else:
        new_console().print(sweep_table(groups))
        for row in failed[:10]:
            print(f"failed: {row['run']}: {row['error']}")
        print(
            f"{len(rows) - len(failed)} of {len(rows)} runs done; wrote {out}: {', '.join(wrote)}"
        )
        if failed:
            print("try the failed ones again with --retry-failed")
    if failed:
        raise typer.Exit(1)
