"""Records and the paper's numbers become the ledger: plain values, ready for JSON. No torch needed.

Every cell of the paper has exactly one status. Where several configurations could stand in a cell,
the one at the paper's scale does, then the one with the values that the paper prints, then the one
with more seeds; whatever still sets it apart from the paper's row stands beside it (`departs`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from ...config.identity import experiment_fields
from ...functional.statistics import mean_interval, paired_difference, summarise
from .. import numbers
from ..studies.cases import Case
from .cells import OURS, case_of, cell_name, name_of
from .deviations import STATUSES, describe_deviations, deviations_from_paper, is_exact, status_of
from .record import LedgerRecord, Tree
from .repeat_command import repeat_command

METRICS: tuple[Literal["faa", "ff"], ...] = ("faa", "ff")
COMPARED = {
    "fixed": "fixed against learned targets",
    "batch": "batch against spatial estimator",
    "stream": "on the stream against on replayed samples",
}


@dataclass(frozen=True)
class MeasuredCase:
    """One configuration over its seeds. records: by seed."""

    case: Case
    scale: str
    records: tuple[LedgerRecord, ...]

    def values(self, metric: str) -> dict[int, float]:
        """By seed, where it is defined."""
        found = {record.seed: record.metric(metric) for record in self.records}
        return {seed: value for seed, value in found.items() if value is not None}

    @property
    def about(self) -> Tree:
        """What the configuration is, in words of the paper."""
        names = ("setting", "buffer", "method", "addition", "estimator", "alpha", "beta", "column")
        return {name: getattr(self.case, name) for name in names}

    @property
    def departs(self) -> Tree:
        return deviations_from_paper(self.records[0])


def assemble(records: Sequence[LedgerRecord]) -> Tree:
    """The whole ledger."""
    groups = measured(records)
    cells = [_printed(cell, groups) for cell in numbers.cells()]
    return {
        "statuses": STATUSES,
        "totals": _totals(cells, records),
        "versions": _versions(records),
        "cells": cells,
        "ours": [row for group in groups for row in _own(group, groups)],
        "measured": [_configuration(group, groups) for group in groups],
        "comparisons": [row for group in groups if (row := _comparison(group, groups))],
        "analyses": [row for record in records for row in _analysed(record)],
    }


def measured(records: Sequence[LedgerRecord]) -> list[MeasuredCase]:
    """Runs that differ in their seed alone belong together."""
    found: dict[str, list[LedgerRecord]] = {}
    for record in records:
        fields = experiment_fields(record.config)
        key = json.dumps([record.scale, repr(record.case.unseeded), fields], sort_keys=True)
        found.setdefault(key, []).append(record)
    return [
        MeasuredCase(runs[0].case.unseeded, runs[0].scale, tuple(sorted(runs, key=_seed)))
        for runs in found.values()
    ]


def _seed(record: LedgerRecord) -> int:
    return record.seed


def _printed(cell: numbers.Cell, groups: Sequence[MeasuredCase]) -> Tree:
    """A cell of the paper, and what stands beside it."""
    case = case_of(cell)
    group = best(case, groups)
    plain = numbers.find(
        cell.table, cell.setting, cell.buffer, cell.method, "", cell.metric, cell.poison
    )
    return {
        "cell": name_of(cell),
        "table": cell.table,
        "setting": cell.setting,
        "buffer": cell.buffer,
        "method": cell.method,
        "addition": cell.addition,
        "poison": cell.poison,
        "metric": cell.metric,
        "paper": cell.value,
        "paper_gain": round(cell.value - plain.value, 2) if plain and cell.addition else None,
        "note": cell.note,
        **_filled(name_of(cell), case, group, cell.metric, groups),
    }


def _own(group: MeasuredCase, groups: Sequence[MeasuredCase]) -> list[Tree]:
    """Both metrics of a configuration that the paper prints no number for."""
    if is_exact(group.case) and _is_printed(group.case):
        return []
    about = group.about
    rows = []
    for metric in METRICS:
        name = cell_name(OURS, group.case, metric)
        if group.values(metric):
            filled = _filled(name, group.case, group, metric, groups)
            rows.append({"cell": name, "table": OURS, **about, "metric": metric, **filled})
    return rows


def _is_printed(case: Case) -> bool:
    return any(case_of(cell) == case for cell in numbers.cells())


def _filled(
    name: str, case: Case, group: MeasuredCase | None, metric: str, groups: Sequence[MeasuredCase]
) -> Tree:
    """Status, numbers and origin of a cell; not measured without a group, or without the metric."""
    values = group.values(metric) if group else {}
    if group is None or not values:
        empty: Tree = {"status": "not measured", "ours": None, "gain": None, "departs": {}}
        return empty | {"records": [], "command": repeat_command(case, "paper")}
    words = describe_deviations(group.departs)
    return {
        "status": status_of(group.records[0]) + (f": {words}" if words else ""),
        "ours": spread(values),
        "gain": _gain(group, groups, metric),
        "departs": group.departs,
        "records": [record.name for record in group.records if record.seed in values],
        "command": f"lider ledger check --cell {name}",
    }


def best(case: Case, groups: Sequence[MeasuredCase]) -> MeasuredCase | None:
    """The configuration that comes nearest to what the paper prints for the case."""
    same = [g for g in groups if replace(g.case, column="tuned") == case]
    return max(
        same,
        key=lambda g: (status_of(g.records[0]) == "paper scale", is_exact(g.case), len(g.records)),
        default=None,
    )


def spread(values: dict[int, float]) -> Tree:
    """Mean, sample standard deviation, Student's 95 % interval of the mean, and every seed's value:

        x̄ ± t(0.975, n − 1) · s / √n

    >>> spread({0: 70.0, 1: 72.0, 2: 71.0})["low"]
    68.5159
    """
    found, interval = summarise(list(values.values())), mean_interval(list(values.values()))
    assert found is not None, "a cell without values is not measured"
    return {
        "mean": _round(found.mean),
        "std": _round(found.std),
        "low": _round(interval.low),
        "high": _round(interval.high),
        "n": found.n,
        "seeds": {str(seed): value for seed, value in sorted(values.items())},
    }


def _gain(group: MeasuredCase, groups: Sequence[MeasuredCase], metric: str) -> Tree | None:
    """Over the method alone, at the same scale."""
    if not group.case.addition:
        return None
    alone = replace(group.case.as_usual, addition="", column="tuned")
    return _difference(group, _at_same_scale(alone, group, groups), metric)


def _comparison(group: MeasuredCase, groups: Sequence[MeasuredCase]) -> Tree | None:
    """An ablation, against LiDER as it is, on the seeds that both have."""
    case = group.case
    compared = COMPARED.get(case.estimator or case.addition.partition("-")[2])
    if case.alpha is not None or case.beta is not None:
        compared = f"α {case.alpha}, β {case.beta} against the preset's"
    usual = _at_same_scale(replace(case.as_usual, addition="lider"), group, groups)
    if compared is None or usual is None:
        return None
    ours, theirs = group.values("faa"), usual.values("faa")
    common = ours.keys() & theirs.keys()
    if not common:
        return None
    return {
        "comparison": compared,
        "label": case.label,
        "setting": case.setting,
        "buffer": case.buffer,
        "scale": group.scale,
        "variant": spread({seed: ours[seed] for seed in common}),
        "usual": spread({seed: theirs[seed] for seed in common}),
        "faa": _difference(group, usual, "faa"),
        "ff": _difference(group, usual, "ff"),
    }


def _at_same_scale(
    case: Case, group: MeasuredCase, groups: Sequence[MeasuredCase]
) -> MeasuredCase | None:
    same = [g for g in groups if (g.case, g.scale) == (case, group.scale)]
    sized = [g for g in same if _epochs_and_width(g) == _epochs_and_width(group)]
    return max(sized, key=lambda g: len(g.records), default=None)


def _epochs_and_width(group: MeasuredCase) -> Any:
    """What must agree for two configurations to be compared."""
    config = group.records[0].config
    return config["training"]["epochs"], config["backbone"], config["benchmark"]


def _difference(treated: MeasuredCase, plain: MeasuredCase | None, metric: str) -> Tree | None:
    """Paired by seed; None without a common one."""
    found = plain and paired_difference(treated.values(metric), plain.values(metric))
    if not found:
        return None
    return {
        "mean": _round(found.mean),
        "low": _round(found.low),
        "high": _round(found.high),
        "p": _round(found.p),
        "n": found.n,
    }


def _configuration(group: MeasuredCase, groups: Sequence[MeasuredCase]) -> Tree:
    """A line of the table of what was measured."""
    first = group.records[0]
    gaps = [record.gap for record in group.records if record.gap is not None]
    plain = replace(group.case, column="tuned")
    printed = {
        cell.metric: cell.value for cell in reversed(numbers.cells()) if case_of(cell) == plain
    }
    return {
        "label": group.case.label,
        **group.about,
        "scale": group.scale,
        "status": status_of(first),
        "departs": group.departs,
        **{m: spread(values) if (values := group.values(m)) else None for m in METRICS},
        **{f"{m}_gain": _gain(group, groups, m) for m in METRICS},
        "paper": printed,
        "aia": _mean([record.class_incremental.aia for record in group.records]),
        "task_incremental": _mean([record.task_incremental.faa for record in group.records]),
        "gap": _mean(gaps),
        "steps": first.steps,
        "seconds": _mean([record.seconds for record in group.records]),
        "seconds_cpu": _mean([record.seconds_cpu for record in group.records]),
        "records": [record.name for record in group.records],
        "commands": [record.command for record in group.records],
    }


def _analysed(record: LedgerRecord) -> list[Tree]:
    about = {"record": record.name, "label": record.case.label, "scale": record.scale}
    return [about | {"analysis": name} | found for name, found in record.analyses.items()]


def _totals(cells: Sequence[Tree], records: Sequence[LedgerRecord]) -> Tree:
    counts = Counter(cell["status"].partition(":")[0] for cell in cells)
    cpu = [record.seconds_cpu for record in records if record.seconds_cpu is not None]
    return {
        "cells": len(cells),
        **{status: counts[status] for status in STATUSES},
        "runs": len(records),
        "seconds": round(sum(record.seconds for record in records)),
        "seconds_cpu": round(sum(cpu)),
        "runs_with_cpu_seconds": len(cpu),
    }


def _versions(records: Sequence[LedgerRecord]) -> list[Tree]:
    """Every set of versions that runs were made with, and how many were."""
    counts = Counter(json.dumps([r.versions, r.commit], sort_keys=True) for r in records)
    found = []
    for text, runs in sorted(counts.items()):
        versions, commit = json.loads(text)
        found.append({**versions, "commit": commit, "runs": runs})
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _round(fmean(known)) if known else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def all_cells(ledger: Tree) -> dict[str, Tree]:
    """The paper's and our own, by name."""
    return {row["cell"]: row for row in (*ledger["cells"], *ledger["ours"])}


def as_json(ledger: Tree) -> str:
    """One line per cell: a change shows where it is."""
    parts = []
    for key, value in ledger.items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {_short(row)}" for row in value)
            parts.append(f' "{key}": [\n{lines}\n ]' if value else f' "{key}": []')
        else:
            parts.append(f' "{key}": {_short(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
