"""`lider sweep`: many runs from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .shared import new_console, this_command

app = typer.Typer()

WorkersOption = Annotated[
    int | None, typer.Option(help="Runs at a time; by default one per core, or per GPU.")
]
EngineOption = Annotated[str, typer.Option(help="local (processes here), ray, or slurm.")]
AddressOption = Annotated[
    str | None, typer.Option(help="Ray's: HOST:PORT, or auto; by default a new one here.")
]
SlurmOption = Annotated[
    list[str] | None,
    typer.Option("--slurm", help="For Slurm, repeatable: timeout_min=60, slurm_partition=gpu, …"),
]


@app.command(epilog="Example: lider sweep sweep.yaml --out runs/sweep --workers 4")
def sweep(
    file: Annotated[Path, typer.Argument(help="What to vary: docs/scaling.md.")],
    out: Annotated[
        Path | None, typer.Option(help="The sweep's folder; by default runs/ and the file's name.")
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
) -> None:
    """Run every combination that a file describes; skip what is done, go on with what is begun."""
    from ..experiments.config import read_yaml
    from ..report.page import write_report
    from ..report.records import read_all
    from ..report.sweeps import SweepDisplay, sweep_table
    from ..scaleout.engines import check_engine, default_workers, make_engine, threads_each
    from ..scaleout.schedule import run_all
    from ..scaleout.summary import group_rows, run_rows, write_csv
    from ..scaleout.sweep import check_points, read_sweep

    check_engine(engine, workers, address, slurm)
    tree = read_yaml(file)
    out = out or Path("runs") / file.stem
    base = tree.get("base")
    device = base.get("device") if isinstance(base, dict) else None
    if engine == "local":
        workers = workers or default_workers([str(device)])
    points = read_sweep(tree, out, threads_each(engine, workers or 1))
    check_points(points, None if engine == "local" else "cpu")
    plans = [point.plan for point in points]
    if dry_run:
        print("\n".join(plan.name for plan in plans))
        return
    chosen = make_engine(engine, workers, address, slurm, out)
    with SweepDisplay(new_console(stderr=True), plans) as display:
        outcomes = run_all(
            plans,
            engine=chosen,
            retry_failed=retry_failed,
            watch=display,
            go_on=this_command(),
        )
    rows = run_rows(points, outcomes)
    groups = group_rows(points, rows)
    write_csv(out / "runs.csv", rows)
    write_csv(out / "summary.csv", groups)
    done = [plan.folder for plan, row in zip(plans, rows, strict=True) if row["state"] == "done"]
    if done:
        write_report(
            read_all(done)[0], out / "report.html", title=f"The sweep {out.name}", memory=False
        )
    console = new_console()
    console.print(sweep_table(groups))
    failed = [row for row in rows if row["state"] == "failed"]
    for row in failed[:10]:
        console.print(f"failed: {row['run']}: {row['error']}", highlight=False, markup=False)
    console.print(
        f"{len(rows) - len(failed)} of {len(rows)} runs done; wrote {out / 'summary.csv'}, "
        f"{out / 'runs.csv'} and {out / 'report.html'}",
        soft_wrap=True,
        highlight=False,
    )
    if failed:
        console.print("try the failed ones again with --retry-failed", highlight=False)
        raise typer.Exit(1)
