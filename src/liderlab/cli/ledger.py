"""`lider ledger`: the paper's cells, ours beside theirs, and how to measure them again."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import RunFailed, UserError
from .commands import command, command_group, explain_stop
from .option_types import Json, argument, flag, option
from .output import new_console, print_json
from .study import runner

if TYPE_CHECKING:
    from ..paper.ledger.campaign import CampaignRun
    from ..paper.ledger.record import LedgerRecord
    from ..runs.planned_run import PlannedRun

group = command_group("ledger", "lider ledger --table faa --setting cifar100", "lider ledger cells")
Tree = dict[str, Any]
Records = Annotated[
    Path | None, option("A folder of records.", default="those that come with the package")
]


@group.callback(invoke_without_command=True)
def show(
    context: typer.Context,
    table: Annotated[str | None, option("Only this table: faa, ff, single-epoch, …")] = None,
    setting: Annotated[str | None, option("Only this setting: cifar100, cub200, …")] = None,
    status: Annotated[
        str | None, option("Only this status: paper, smaller, or not (measured).")
    ] = None,
    records: Records = None,
    as_json: Json = False,
) -> None:
    """Every cell of the paper's tables: ours beside theirs.

    Reads the records of measured runs that come with the package, or those of --records; writes
    nothing. Cells that were not measured are listed too.
    """
    if (name := context.invoked_subcommand) is not None:
        if as_json or any((table, setting, status, records)):
            raise UserError(f"options come after the command: lider ledger {name} …")
        return
    from ..paper.ledger.ledger_document import select_cells
    from ..report.terminal.ledger_tables import FULL_SCALE, cell_table, count_table

    ledger = _ledger(records)[0]
    chosen = select_cells(ledger, table, setting, status)
    if as_json:
        kept = {id(row) for row in chosen}
        parts = {k: [row for row in ledger[k] if id(row) in kept] for k in ("cells", "ours")}
        print_json(ledger | parts)
        return
    console = new_console()
    if table is setting is status is None:
        console.print(count_table(ledger))
        chosen = [row for row in chosen if row["ours"]]
        if not chosen:
            print("nothing was measured yet: lider ledger measure")
            return
        console.print()
    console.print(cell_table(chosen))
    console.print(
        f"ours: mean ± std (seeds); {FULL_SCALE}: at the paper's scale, others at a smaller one "
        "(--json says how); –: not measured"
    )


def _ledger(folder: Path | None) -> tuple[Tree, list[LedgerRecord]]:
    from ..paper.ledger.ledger_document import assemble
    from ..paper.ledger.record import read_records

    records = read_records(folder)
    return assemble(records), records


@command("lider ledger cells cifar100 er-ace", group=group)
def cells(
    words: Annotated[
        list[str] | None, argument("Only cells with these words in their names.")
    ] = None,
    records: Records = None,
    as_json: Json = False,
) -> None:
    """List the names of the cells, for `lider ledger check`.

    Reads the records; writes nothing.
    """
    from ..paper.ledger.ledger_document import all_cells

    names = all_cells(_ledger(records)[0])
    chosen = [name for name in names if all(word in name for word in words or [])]
    if not chosen:
        raise UserError(f"no cell has {' and '.join(map(repr, words or []))} in its name")
    if as_json:
        print_json(chosen)
    else:
        print("\n".join(chosen))


@command("lider ledger measure --out ledger --workers 2 --group ablations", group=group)
def measure(
    out: Annotated[Path, option("The folder of the runs.", metavar="FOLDER")] = Path("ledger"),
    workers: Annotated[int, option("Runs at a time, each with one thread.", min=1)] = 1,
    groups: Annotated[
        list[str] | None,
        option(
            "methods, ablations, single-epoch or stronger; repeatable.",
            names=["--group"],
            metavar="GROUP",
            default="all",
        ),
    ] = None,
    seeds: Annotated[
        int | None, option("Number of seeds.", default="3, single-epoch 1", min=1)
    ] = None,
    scale: Annotated[
        str | None, option("Another scale, like smoke to try it out.", default="the ledger's")
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", "List all runs, and which have finished.")] = False,
) -> None:
    """Execute the runs of the ledger; skip finished ones.

    Reads the data sets of the paper's benchmarks. Writes runs, as `lider study` does, to OUT/runs:
    all of seed 0 first. The same command resumes after an interruption.
    """
    from ..paper.ledger.campaign import GROUPS, campaign
    from ..paper.studies.cases import Request
    from ..runs.folder import RunFolder

    Request(scale or "cpu")  # refuse a wrong scale before anything starts
    items = campaign(groups or tuple(GROUPS), seeds, scale)
    plans = list({plan.name: plan for plan in (item.plan(out) for item in items)}.values())
    if dry_run:
        for plan in plans:
            print(plan.name, "finished" if RunFolder(plan.folder).finished else "", sep="\t")
        return
    from ..paper.studies.study_execution import check_inputs, is_finished

    waiting = [plan for plan in plans if not is_finished(plan)]
    done = len(plans) - len(waiting)
    print(f"{len(plans)} runs, {done} of them finished earlier", file=sys.stderr)
    failed: dict[str, str] = {}
    if waiting:
        check_inputs(waiting)
        with explain_stop():
            failed = runner(workers)(waiting)
    _analyze(items, out, [plan for plan in plans if plan.name not in failed])
    print(f"next: lider ledger collect {out}")
    if failed:
        reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
        raise RunFailed(f"{len(failed)} of {len(plans)} runs failed: {reasons}")


def _analyze(items: Sequence[CampaignRun], out: Path, done: Sequence[PlannedRun]) -> None:
    """Analyse the first pair of runs, once."""
    from ..paper.ledger.campaign import ANALYSES, is_analysed
    from ..report.study_files import write_analysis

    for item in items:
        plan = item.plan(out)
        if not is_analysed(item.case) or plan not in done:
            continue
        for name in ANALYSES:
            folder = plan.folder / "analysis" / name
            if not (folder / "result.json").is_file():
                print(f"{name} in {plan.name}", file=sys.stderr)
                write_analysis(name, plan.folder, item.scale, folder)


@command("lider ledger collect ledger", group=group)
def collect(
    folder: Annotated[
        Path | None,
        argument("Where `measure` or `study` put their runs; without it, only write the pages."),
    ] = None,
    out: Annotated[
        Path | None,
        option("Where to write.", metavar="FOLDER", default="the source tree"),
    ] = None,
    commit: Annotated[
        str | None, option("The commit of this project that the runs were made with.")
    ] = None,
) -> None:
    """Take the finished runs of a folder into the ledger.

    Reads run folders. Writes a small record of each run, ledger.json, ledger.md and the figures.
    """
    from ..files import write_errors
    from ..paper.ledger.ledger_paths import ledger_paths
    from ..paper.ledger.record import merged, read_records, write_records
    from ..paper.ledger.record_collection import CollectedRecords, collect_records
    from ..report.page.ledger_markdown import write_ledger

    where = ledger_paths(out)
    found = collect_records(folder, commit) if folder else CollectedRecords([], {})
    for name, why in found.left_out.items():
        print(f"left out {name}: {why}", file=sys.stderr)
    old = read_records(where.records) if where.records.is_dir() else []
    records = merged(old, found.records)
    with write_errors(where.pages):
        write_records(found.records, where.records)
        written = write_ledger(records, where.pages)
    print(
        f"{len(found.records)} runs taken, {len(found.left_out)} left out; {len(records)} records; "
        f"wrote {', '.join(written)} in {where.pages}"
    )


@command("lider ledger check --cell faa/cifar100/500/er-ace+lider", group=group)
def check(
    cell: Annotated[str, option("The cell (lider ledger cells).")],
    seed: Annotated[int | None, option("Which of its runs.", default="the first")] = None,
    out: Annotated[
        Path | None,
        option("The run folder, kept and resumed.", metavar="FOLDER", default="a temporary folder"),
    ] = None,
    tolerance: Annotated[
        float | None,
        option("Points by which FAA and FF may differ.", default="see docs/studies.md", min=0),
    ] = None,
    records: Records = None,
    as_json: Json = False,
) -> None:
    """Run one cell again, and compare it with its record.

    Reads the records and the benchmark's data. Writes the run to --out, if it is given. Exit
    code 1 if the two do not agree.
    """
    from ..paper.ledger.reproduction_check import (
        compare,
        record_of_seed,
        records_of_cell,
        repeat_run,
    )
    from ..report.terminal.run_progress import ProgressDisplay

    runs = records_of_cell(cell, *_ledger(records))
    record = record_of_seed(runs, seed)
    print(f"{record.name}: {record.command}", file=sys.stderr)
    not_kept = ["nothing was kept; with --out it can be resumed"] if out is None else []
    with (
        tempfile.TemporaryDirectory() as temporary,
        explain_stop(*not_kept),
        ProgressDisplay(new_console(stderr=True)) as display,
    ):
        display.begin(record.name)
        now = repeat_run(record, out or Path(temporary) / "run", display)
        display.finish()
    outcome = compare(record, now, runs, tolerance)
    if as_json:
        print_json({"cell": cell, **outcome.as_tree()})
    else:
        print("\n".join(outcome.lines()))
    if not outcome.agrees:
        raise RunFailed(f"{cell} does not agree with its record")
