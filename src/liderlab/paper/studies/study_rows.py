"""Rows of a study's table: one per case, its seeds together, beside the paper's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...functional.statistics import paired_difference, summarise
from .. import numbers
from .cases import Addition, Case, Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRICS = ("faa", "ff")
SEEDS = TableColumn("seeds", ("seeds",), digits=0)
CASE_COLUMNS = [
    TableColumn("run on", ("benchmark",)),
    TableColumn("buffer", ("buffer",), digits=0),
    TableColumn("method", ("label",)),
]
ACCURACY_COLUMNS = [
    TableColumn("setting", ("setting",)),
    *CASE_COLUMNS,
    TableColumn("FAA ↑", ("faa", "faa_std")),
    TableColumn("paper", ("paper_faa",)),
    TableColumn("FF ↓", ("ff", "ff_std")),
    TableColumn("paper", ("paper_ff",)),
    TableColumn("ΔFAA [95 %]", ("gain", "gain_low", "gain_high"), sign=True),
    TableColumn("paper", ("paper_gain",), sign=True),
    SEEDS,
]


def by_case(finished: Sequence[FinishedCase]) -> dict[Case, list[FinishedCase]]:
    """The runs of each case, its seeds in order."""
    groups: dict[Case, list[FinishedCase]] = {}
    for run in finished:
        groups.setdefault(run.case.unseeded, []).append(run)
    return groups


def describe(case: Case, runs: Sequence[FinishedCase]) -> Row:
    """The benchmark and buffer of the runs, and the case of the paper that they stand for."""
    config = runs[0].result["config"]
    return {
        "setting": case.setting,
        "benchmark": config["benchmark"]["name"],
        "tasks": config["benchmark"]["tasks"],
        "buffer": None if case.buffer is None else config["memory"]["size"],
        "paper_buffer": case.buffer,
        "method": case.method,
        "addition": case.addition,
        "column": case.column,
        "label": case.label,
        "seeds": len(runs),
    }


def spreads(
    runs: Sequence[FinishedCase], read: Callable[[FinishedCase], Mapping[str, float | None]]
) -> Row:
    """Mean (`name`) and standard deviation (`name_std`) of every number that `read` returns."""
    found = [read(run) for run in runs]
    row: Row = {}
    for name in found[0]:
        summary = summarise([value for one in found if (value := one[name]) is not None])
        row[name] = summary.mean if summary else None
        row[f"{name}_std"] = summary.std if summary else None
    return row


def gain_over(
    plain: Sequence[FinishedCase],
    treated: Sequence[FinishedCase],
    read: Callable[[FinishedCase], float | None],
) -> Row:
    """The difference treated − plain of a number, paired by seed; empty without a common seed."""
    ours, theirs = ({run.case.seed: read(run) for run in runs} for runs in (treated, plain))
    found = paired_difference(ours, theirs)
    if found is None:
        return {}
    return {"gain": found.mean, "gain_low": found.low, "gain_high": found.high, "gain_p": found.p}


def accuracy_rows(
    finished: Sequence[FinishedCase], tables: Mapping[str, str], against: Addition = ""
) -> list[Row]:
    """FAA and FF of each case, and its gain in FAA.

    tables: the paper's table for each metric. against: the gain is over the same case with this
    addition ("": the method alone), seed by seed; always over the tuned column.
    """
    groups = by_case(finished)
    rows = []
    for case, runs in groups.items():
        row = describe(case, runs) | spreads(runs, lambda run: {m: run.metric(m) for m in METRICS})
        row |= {f"paper_{metric}": _printed(case, metric, tables) for metric in METRICS}
        base = replace(case.as_usual, addition=against, column="tuned", estimator=case.estimator)
        if case.addition != against and base in groups:
            row |= gain_over(groups[base], runs, lambda run: run.metric("faa"))
            ours, theirs = row["paper_faa"], _printed(base, "faa", tables)
            row["paper_gain"] = None if None in (ours, theirs) else ours - theirs
        rows.append(row)
    return rows


def _printed(case: Case, metric: str, tables: Mapping[str, str]) -> float | None:
    """The paper prints tuned values only."""
    if metric not in tables or case.column != "tuned":
        return None
    poison = case.poison if tables[metric] == "poisoning" else None
    cell = numbers.find_cell(
        tables[metric], case.setting, case.buffer, case.method, case.addition, metric, poison
    )
    return cell.value if cell else None


def accuracy_study(
    *,
    tables: Mapping[str, str],
    series: Mapping[str, str],
    against: Addition = "",
    notes: Sequence[str] = (),
    **fields: Any,
) -> Study:
    """A study of FAA and FF: their table, and a bar of FAA for every series.

    tables, against: see `accuracy_rows`. series: an addition by its label. fields: of the `Study`.
    """

    def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
        rows = accuracy_rows(finished, tables, against)
        return Findings(rows, ACCURACY_COLUMNS, list(notes))

    def show(findings: Findings) -> Figure:
        from .charts import accuracy_bars

        tuned = {label: (addition, "tuned") for label, addition in series.items()}
        return accuracy_bars(findings.rows, tuned)

    paper = "; ".join(dict.fromkeys(numbers.TABLES[table] for table in tables.values()))
    return Study(paper=paper, compute=compute, show=show, **fields)
