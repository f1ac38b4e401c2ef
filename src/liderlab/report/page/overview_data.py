"""The data behind the report's first page: a row per seed group, and all that filters need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Any

from ... import __version__
from ...config.diff import flat
from ...functional.statistics import summarise
from ...paper.ledger.record import LedgerRecord
from ..glossary import METRICS, SETTINGS, TERMS
from ..run_records import RunRecord, accuracy_so_far
from ..seed_groups import SeedGroup, differing, group_by_seed, pair_without_lider, seed_difference
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

    paper, ledger: numbers to show beside the groups. ledger: by default the package's records.
    """
    groups = group_by_seed(records)
    rows = [_row(group, groups, paper) for group in groups]
    numbers = {id(record): number for number, record in enumerate(records)}
    runs = [_run(record) for record in records]
    for index, (group, known) in enumerate(zip(groups, in_ledger(groups, ledger), strict=True)):
        rows[index] |= {"runs": [numbers[id(run)] for run in group.runs], "ledger": known}
        for number in rows[index]["runs"]:
            runs[number]["group"] = index
    _mark_best(rows, groups)
    configs = [flat(record.config) for record in records]
    return {
        "title": title,
        "version": __version__,
        "metrics": {key: vars(metric) for key, metric in METRICS.items()},
        "terms": TERMS,
        "groups": rows,
        "runs": runs,
        "varying": {
            field: Counter(as_text(c[field]) if field in c else None for c in configs).most_common(
                8
            )
            for field in differing(configs)
            if not field.startswith("scale.changes")
        },
    }


def _row(group: SeedGroup, groups: Sequence[SeedGroup], paper: PaperNumbers) -> Tree:
    run, pair = group.first, pair_without_lider(group, groups)
    finished = [r for r in group.runs if r.result]
    changes = (run.config.get("scale") or {}).get("changes") or {}
    curves = {s: [accuracy_so_far(r.matrix(s)) for r in finished] for s in SETTINGS}
    return {
        "label": group.label,
        "note": group.note,
        "benchmark": run.stream,
        "tasks": run.tasks,
        "buffer": run.buffer,
        "scale": run.scale,
        "changes": [f"{f}: {now.get('from')} → {now.get('to')}" for f, now in changes.items()],
        "seeds": len({r.seed for r in finished}),
        "values": _by_metric(lambda s, m: _vars(summarise(list(group.values(s, m).values())))),
        "gain": {s: pair and _gain(group, pair.without, s) for s in SETTINGS},
        "also": list(pair.also) if pair else [],
        "paper": in_paper(group, paper),
        "curve": {setting: _mean_curve(curves[setting]) for setting in SETTINGS},
    }


def _run(record: RunRecord) -> Tree:
    return {
        "name": record.name,
        "seed": record.seed,
        "state": record.state,
        "seconds": (record.result or {}).get("seconds"),
        "values": _by_metric(record.metric),
    }


def _by_metric(value: Callable[[str, str], Any]) -> Tree:
    return {s: {m: value(s, m) for m in METRICS} for s in SETTINGS}


def _gain(group: SeedGroup, other: SeedGroup, setting: str) -> Tree | None:
    return _vars(seed_difference(group.values(setting, "faa"), other.values(setting, "faa")))


def _vars(found: Any) -> Tree | None:
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
