"""Accuracy and forgetting of a study's cases, over seeds, beside the paper's own numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...functional.statistics import paired_difference, summarise
from .. import numbers
from .cases import Addition, Case
from .study_definition import FinishedCase, Row, TableColumn

METRICS = ("faa", "ff")
COLUMNS = [
    TableColumn("setting", ("setting",)),
    TableColumn("run on", ("benchmark",)),
    TableColumn("buffer", ("buffer",), digits=0),
    TableColumn("method", ("label",)),
    TableColumn("FAA ↑", ("faa", "faa_std")),
    TableColumn("paper", ("paper_faa",)),
    TableColumn("FF ↓", ("ff", "ff_std")),
    TableColumn("paper", ("paper_ff",)),
    TableColumn("ΔFAA [95 %]", ("gain", "gain_low", "gain_high"), sign=True),
    TableColumn("paper", ("paper_gain",), sign=True),
    TableColumn("seeds", ("seeds",), digits=0),
]


def accuracy_rows(
    finished: Sequence[FinishedCase], tables: Mapping[str, str], against: Addition = ""
) -> list[Row]:
    """One row per case, its seeds taken together.

    tables: the paper's table for each metric. against: the gain is over the same case with this
    addition ("": the method alone), seed by seed; always over the tuned column.
    """
    groups = by_case(finished)
    rows = []
    for case, runs in groups.items():
        row: Row = {
            **describe(case, runs),
            **{key: value for metric in METRICS for key, value in _spread(runs, metric).items()},
            **{f"paper_{metric}": _printed(case, metric, tables) for metric in METRICS},
        }
        base = replace(case, addition=against, column="tuned", alpha=None, beta=None)
        if case.addition != against and base in groups:
            row |= gain(runs, groups[base])
            ours, theirs = row["paper_faa"], _printed(base, "faa", tables)
            row["paper_gain"] = None if None in (ours, theirs) else ours - theirs
        rows.append(row)
    return rows


def by_case(finished: Sequence[FinishedCase]) -> dict[Case, list[FinishedCase]]:
    """The runs of each case, its seeds in order."""
    groups: dict[Case, list[FinishedCase]] = {}
    for run in finished:
        groups.setdefault(run.case.unseeded, []).append(run)
    return groups


def describe(case: Case, runs: Sequence[FinishedCase]) -> Row:
    """What was run, and for what of the paper's."""
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


def gain(
    treated: Sequence[FinishedCase], plain: Sequence[FinishedCase], metric: str = "faa"
) -> Row:
    """The paired difference over the seeds that both have."""
    with_it, without = (
        {run.case.seed: run.metric(metric) for run in runs} for runs in (treated, plain)
    )
    found = paired_difference(with_it, without)
    if found is None:
        return {"gain": None, "gain_low": None, "gain_high": None}
    return {"gain": found.mean, "gain_low": found.low, "gain_high": found.high, "gain_p": found.p}


def _spread(runs: Sequence[FinishedCase], metric: str) -> Row:
    found = summarise([v for run in runs if (v := run.metric(metric)) is not None])
    mean, std = (found.mean, found.std) if found else (None, None)
    return {metric: mean, f"{metric}_std": std}


def _printed(case: Case, metric: str, tables: Mapping[str, str]) -> float | None:
    """The paper prints tuned values only."""
    if metric not in tables or case.column != "tuned":
        return None
    poison = case.poison if tables[metric] == "poisoning" else None
    cell = numbers.find(
        tables[metric], case.setting, case.buffer, case.method, case.addition, metric, poison
    )
    return cell.value if cell else None
