"""`lider ledger`: the paper's cells, ours beside theirs, and how to measure them again."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import RunFailed, Stopped, UserError, unknown
from .help_pages import Group, examples
from .shared import AGAIN, JsonOption, new_console, print_json
from .study import runner

if TYPE_CHECKING:
    from rich.console import Console

    from ..paper.ledger.campaign import CampaignRun
    from ..paper.ledger.record import LedgerRecord
    from ..paper.ledger.reproduction_check import CheckOutcome
    from ..runs.planned_run import PlannedRun

app = typer.Typer(
    cls=Group, epilog=examples("lider ledger --table faa --setting cifar100", "lider ledger cells")
)
Tree = dict[str, Any]
RecordsOption = Annotated[
    Path | None, typer.Option(help="Other records than those that come with the package.")
]


@app.callback(invoke_without_command=True)
def show(
    context: typer.Context,
    table: Annotated[
        str | None, typer.Option(help="Only this table: faa, ff, single-epoch, …")
    ] = None,
    setting: Annotated[
        str | None, typer.Option(help="Only this setting: cifar100, cub200, …")
    ] = None,
    status: Annotated[
        str | None, typer.Option(help="Only these: paper, smaller, or not (measured).")
    ] = None,
    records: RecordsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Every cell of the paper's tables: ours beside theirs.

    Reads the records of measured runs that come with the package, or those of --records; writes
    nothing. What was not measured is listed as such.
    """
    if (command := context.invoked_subcommand) is not None:
        if as_json or any((table, setting, status, records)):
            raise UserError(f"options come after the command: lider ledger {command} …")
        return
    from ..report.ledger_pages import cell_table, table_counts

    ledger = _ledger(records)[0]
    chosen = _chosen(ledger, table, setting, status)
    if as_json:
        kept = {id(row) for row in chosen}
        parts = {k: [row for row in ledger[k] if id(row) in kept] for k in ("cells", "ours")}
        print_json(ledger | parts)
        return
    console = new_console()
    if table is setting is status is None:
        console.print(table_counts(ledger))
        chosen = [row for row in chosen if row["ours"]]
        if not chosen:
            console.print("nothing was measured yet: lider ledger measure", highlight=False)
            return
        console.print()
    console.print(cell_table(chosen))
    console.print(
        "ours: mean ± std (seeds); –: not measured; what a smaller scale is: --json, or the page",
        highlight=False,
    )


def _chosen(ledger: Tree, table: str | None, setting: str | None, status: str | None) -> list[Tree]:
    """The cells that were asked for; a name that none of them has is refused."""
    rows: list[Tree] = [*ledger["cells"], *ledger["ours"]]
    kinds = {kind.partition(" ")[0]: kind for kind in ledger["statuses"]}
    if status is not None and status not in kinds and status not in kinds.values():
        raise unknown("status", status, kinds)
    for field, value in (("table", table), ("setting", setting)):
        names = list(dict.fromkeys(row[field] for row in rows))
        if value is not None and value not in names:
            raise unknown(field, value, names)
    return [
        row
        for row in rows
        if table in (None, row["table"])
        and setting in (None, row["setting"])
        and (status is None or row["status"].startswith(kinds.get(status, status)))
    ]


def _ledger(folder: Path | None) -> tuple[Tree, list[LedgerRecord]]:
    from ..paper.ledger.ledger_document import assemble
    from ..paper.ledger.record import read_records

    records = read_records(folder)
    return assemble(records), records


@app.command(epilog=examples("lider ledger cells cifar100 er-ace"))
def cells(
    words: Annotated[
        list[str] | None, typer.Argument(help="Only cells with these words in their names.")
    ] = None,
    records: RecordsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the names of the cells, which `check` takes.

    Reads the records; writes nothing.
    """
    from ..paper.ledger.ledger_document import all_cells

    names = all_cells(_ledger(records)[0])
    chosen = [name for name in names if all(word in name for word in words or [])]
    if not chosen:
        raise UserError(f"no cell has {' and '.join(map(repr, words or []))} in its name")
    if as_json:
        print_json(chosen)
        return
    for name in chosen:
        print(name)


@app.command(epilog=examples("lider ledger measure --out ledger --workers 2 --group ablations"))
def measure(
    out: Annotated[Path, typer.Option(help="Where the runs go.")] = Path("ledger"),
    workers: Annotated[int, typer.Option(min=1, help="Runs at a time, each with one thread.")] = 1,
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="methods, ablations, single-epoch or stronger; repeatable; default: all."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds; by default 3, single-epoch 1.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Another scale than the ledger's, to try it: smoke.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List all runs, and which have finished.")
    ] = False,
) -> None:
    """Run what the ledger needs; skip what is done.

    Reads the data sets of the paper's benchmarks. Writes runs, as `lider study` does, to OUT/runs:
    all of seed 0 first. Interrupted, the same command goes on where it was.
    """
    from ..paper.ledger.campaign import GROUPS, campaign
    from ..paper.studies.cases import Request
    from ..runs.folder import RunFolder

    Request(scale or "cpu")  # a wrong scale is said before anything starts
    items = campaign(group or tuple(GROUPS), seeds, scale)
    plans = list({plan.name: plan for plan in (item.plan(out) for item in items)}.values())
    if dry_run:
        for plan in plans:
            print(plan.name, "finished" if RunFolder(plan.folder).finished else "", sep="\t")
        return
    from ..paper.studies.study_execution import check_inputs, is_finished

    waiting = [plan for plan in plans if not is_finished(plan)]
    err = new_console(stderr=True)
    err.print(f"{len(plans)} runs, {len(plans) - len(waiting)} of them are there already")
    try:
        if waiting:
            check_inputs(waiting)
        failed = runner(workers)(waiting) if waiting else {}
    except Stopped as stopped:
        raise stopped.saying(AGAIN) from None
    _analyze(items, out, [plan for plan in plans if plan.name not in failed], err)
    new_console().print(f"next: lider ledger collect {out}", soft_wrap=True, highlight=False)
    if failed:
        reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
        raise RunFailed(f"{len(failed)} of {len(plans)} runs failed: {reasons}")


def _analyze(
    items: Sequence[CampaignRun], out: Path, done: Sequence[PlannedRun], err: Console
) -> None:
    """Look into the first pair, once."""
    from ..paper.ledger.campaign import ANALYSES, followed
    from ..paper.studies.single_run_analysis import analyze_run
    from ..report.terminal.study_tables import write_findings

    for item in items:
        plan = item.plan(out)
        if not followed(item.case) or plan not in done:
            continue
        for name in ANALYSES:
            folder = plan.folder / "analysis" / name
            if not (folder / "result.json").is_file():
                err.print(f"{name} in {plan.name}", highlight=False)
                findings, figure, document = analyze_run(name, plan.folder, item.scale)
                title = f"# {document['title']}\n\nThe run {plan.name}.\n\n"
                write_findings(document, title, findings, figure, folder)


@app.command(epilog=examples("lider ledger collect ledger"))
def collect(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Where `measure` or `study` put their runs; without one, only write anew.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write; by default the ledger_paths of the source tree."),
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="The commit of this project that the runs were made with.")
    ] = None,
) -> None:
    """Take the finished runs of a folder into the ledger.

    Reads run folders. Writes a small record of each run, ledger.json, ledger.md and the figures.
    """
    from ..paper.ledger.ledger_paths import ledger_paths
    from ..paper.ledger.record import merged, read_records, write_records
    from ..paper.ledger.record_collection import CollectedRecords, collect_records
    from ..report.ledger_pages import write_ledger

    where = ledger_paths(out)
    found = collect_records(folder, commit) if folder else CollectedRecords([], {})
    for name, why in found.left_out.items():
        new_console(stderr=True).print(f"left out {name}: {why}", highlight=False, soft_wrap=True)
    old = read_records(where.records) if where.records.is_dir() else []
    records = merged(old, found.records)
    try:
        write_records(found.records, where.records)
        written = write_ledger(records, where.pages)
    except OSError as error:
        raise UserError(f"cannot write to {where.pages}: {error.strerror}") from None
    print(
        f"{len(found.records)} runs taken, {len(found.left_out)} left out; {len(records)} records; "
        f"wrote {', '.join(written)} in {where.pages}"
    )


@app.command(epilog=examples("lider ledger check --cell faa/cifar100/500/er-ace+lider"))
def check(
    cell: Annotated[str, typer.Option(help="lider ledger cells.", show_default=False)],
    seed: Annotated[
        int | None, typer.Option(help="Which of its runs; by default the first.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run's folder, kept and resumed; by default a temporary one."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, help="Points FAA and FF may differ by; by default docs/studies.md."),
    ] = None,
    records: RecordsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one cell again, and compare it with what is committed.

    Reads the records and the benchmark's data. Writes the run to --out, if it is given. Ends with
    exit code 1 if the two do not agree.
    """
    from ..paper.ledger.reproduction_check import (
        compare,
        record_of_seed,
        records_of_cell,
        repeat_run,
    )

    runs = records_of_cell(cell, *_ledger(records))
    record = record_of_seed(runs, seed)

    from ..report.terminal.progress import ProgressDisplay

    err = new_console(stderr=True)
    err.print(f"{record.name}: {record.command}", highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory() as temporary, ProgressDisplay(err, 1) as display:
        display.begin(record.name)
        try:
            now = repeat_run(record, out or Path(temporary) / "run", display)
        except Stopped as stopped:
            if out is None:
                raise stopped.saying("nothing was kept; with --out it can be resumed") from None
            raise stopped.saying(AGAIN) from None
        display.finish()
    verdict = compare(record, now, runs, tolerance)
    _tell(cell, verdict, as_json)
    if not verdict.agrees:
        raise RunFailed(f"{cell} does not agree with its record")


def _tell(cell: str, verdict: CheckOutcome, as_json: bool) -> None:
    committed, now = verdict.committed, verdict.now
    if as_json:
        tree = {
            "cell": cell,
            "record": committed.name,
            "agrees": verdict.agrees,
            "committed": committed.class_incremental.model_dump(),
            "now": now.class_incremental.model_dump(),
            "apart": verdict.apart,
            "allowed": verdict.allowed,
            "other_versions": verdict.other,
        }
        print_json(tree)
        return
    for metric in ("faa", "ff"):
        a, b = committed.metric(metric), now.metric(metric)
        if a is not None and b is not None:
            print(
                f"{metric.upper()}: committed {a:.4f}, now {b:.4f}, difference {b - a:+.4f} "
                f"(allowed: {verdict.allowed[metric]:.4f})"
            )
    for name, (before, here) in verdict.other.items():
        print(f"{name}: committed {before}, here {here}")
    if not verdict.apart:
        exact = " and weights" if committed.network and now.network else ""
        print(f"equal: FAA, FF, accuracy matrix{exact}")
    else:
        print(f"not equal: {', '.join(verdict.apart)}")
