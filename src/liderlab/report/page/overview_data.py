"""The data behind the report's first page: a row per seed group, and all that filters need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Any

from ... import __version__
from ...config.diff import flat
from ...functional.statistics import summarise
from ...paper.ledger.record import LedgerRecord
from ..glossary import METRICS, SETTINGS, TERMS
from ..run_records import RunRecord, accuracy_so_far
from ..seed_groups import (
    LiderPair,
    SeedGroup,
    differing,
    group_by_seed,
    pair_without_lider,
    seed_difference,
)
from .curves import round_to_screen
from .reference_numbers import PaperNumbers, in_ledger, in_paper
from .run_data import as_text

Tree = dict[str, Any]


def overview(
    records: Sequence[RunRecord],
    title: str,
    paper: PaperNumbers,
    ledger: Iterable[LedgerRecord] | None = None,
) -> Tree:
    """Metrics, terms, the groups with their means, and the runs.

    paper, ledger: numbers to show beside them; of the ledger by default what the package holds.
    """
    groups = group_by_seed(records)
    numbers = {id(record): number for number, record in enumerate(records)}
    rows = [_row(group, groups, paper) for group in groups]
    for row, group, known in zip(rows, groups, in_ledger(groups, ledger), strict=True):
        row["runs"] = [numbers[id(run)] for run in group.runs]
        row["ledger"] = known
    _mark_best(rows, groups)
    row_of = {run: number for number, row in enumerate(rows) for run in row["runs"]}
    configs = [flat(record.config) for record in records]
    return {
        "title": title,
        "version": __version__,
        "metrics": {key: vars(metric) for key, metric in METRICS.items()},
        "terms": TERMS,
        "groups": rows,
        "runs": [_run(record, row_of[number]) for number, record in enumerate(records)],
        "varying": {
            field: _commonest_values(field, configs)
            for field in differing(configs)
            if not field.startswith("scale.changes")
        },
    }


def _commonest_values(field: str, configs: Sequence[Tree]) -> list[tuple[str | None, int]]:
    """The commonest values of a field, and how many runs have each."""
    return Counter(as_text(c[field]) if field in c else None for c in configs).most_common(8)


def _row(group: SeedGroup, groups: Sequence[SeedGroup], paper: PaperNumbers) -> Tree:
    run, pair = group.first, pair_without_lider(group, groups)
    finished = [r for r in group.runs if r.result]
    changes = (run.config.get("scale") or {}).get("changes") or {}
    return {
        "label": group.label,
        "note": group.note,
        "benchmark": run.benchmark,
        "tasks": run.tasks,
        "buffer": run.buffer,
        "scale": run.scale,
        "changes": [f"{f}: {now.get('from')} → {now.get('to')}" for f, now in changes.items()],
        "seeds": len({r.seed for r in finished}),
        "values": {s: {m: _mean_std(group, s, m) for m in METRICS} for s in SETTINGS},
        "adds": {s: {m: _lider_adds(group, pair, s, m) for m in METRICS} for s in SETTINGS},
        "also": list(pair.also) if pair else [],
        "paper": in_paper(group, paper),
        "curve": {
            s: _mean_curve([accuracy_so_far(r.matrix(s)) for r in finished]) for s in SETTINGS
        },
    }


def _mean_std(group: SeedGroup, setting: str, metric: str) -> Tree | None:
    found = summarise(list(group.values(setting, metric).values()))
    return vars(found) if found else None


def _lider_adds(group: SeedGroup, pair: LiderPair | None, setting: str, metric: str) -> Tree | None:
    if pair is None:
        return None
    found = seed_difference(group.values(setting, metric), pair.without.values(setting, metric))
    return vars(found) if found else None


def _mean_curve(curves: Sequence[Sequence[float | None]]) -> Tree:
    """Mean and standard deviation over runs, task by task."""
    points = [[v for v in values if v is not None] for values in zip(*curves, strict=False)]
    return {
        "mean": [round_to_screen(fmean(values)) if values else None for values in points],
        "std": [round_to_screen(stdev(values)) if len(values) > 1 else None for values in points],
    }


def _mark_best(rows: Sequence[Tree], groups: Sequence[SeedGroup]) -> None:
    """Add to each row the metrics in which it has the best mean of its setting."""
    rivals: dict[tuple[Any, ...], list[Tree]] = {}
    for row, group in zip(rows, groups, strict=True):
        row["best"] = {setting: [] for setting in SETTINGS}
        if group.first.method != "joint":
            rivals.setdefault(group.setting, []).append(row)
    for same in rivals.values():
        for setting in SETTINGS:
            for metric, fact in METRICS.items():
                known = [row for row in same if row["values"][setting][metric]]
                if len(known) > 1:
                    means = [fact.better * row["values"][setting][metric]["mean"] for row in known]
                    known[means.index(max(means))]["best"][setting].append(metric)


def _run(record: RunRecord, group: int) -> Tree:
    return {
        "name": record.name,
        "group": group,
        "seed": record.seed,
        "state": record.state,
        "seconds": (record.result or {}).get("seconds"),
        "values": {s: {m: record.metric(s, m) for m in METRICS} for s in SETTINGS},
    }
