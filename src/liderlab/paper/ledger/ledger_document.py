"""The ledger as plain values, ready for JSON: our records beside the paper's numbers. No torch.

Every cell of the paper has exactly one status. If several configurations fit a cell, the one at the
paper's scale fills it, then the one with the values that the paper prints, then the one with more
seeds. `departs` lists how it still deviates from the paper's row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any

from ...errors import unknown
from .. import numbers
from ..studies.cases import Case
from .cells import OURS, case_of, cell_name, name_of
from .deviations import STATUSES, describe_deviations, is_exact, status_of
from .measured_cases import (
    METRICS,
    MeasuredCase,
    difference,
    gain,
    measured_cases,
    of_same_size,
    spread,
)
from .record import LedgerRecord, Tree, rounded
from .repeat_command import repeat_command

COMPARED = {
    "fixed": "fixed against learned targets",
    "batch": "batch against spatial estimator",
    "stream": "on the stream against on replayed samples",
}


def assemble(records: Sequence[LedgerRecord]) -> Tree:
    """The whole ledger."""
    groups = measured_cases(records)
    cells = [_paper_cell(cell, groups) for cell in numbers.cells()]
    return {
        "statuses": STATUSES,
        "totals": _totals(cells, records),
        "versions": _versions(records),
        "cells": cells,
        "ours": [row for group in groups for row in _own_cells(group, groups)],
        "measured": [_configuration(group, groups) for group in groups],
        "comparisons": [row for group in groups if (row := _comparison(group, groups))],
        "analyses": [row for record in records for row in _analyses(record)],
    }


def all_cells(ledger: Tree) -> dict[str, Tree]:
    """The paper's cells and our own, by name."""
    return {row["cell"]: row for row in (*ledger["cells"], *ledger["ours"])}


def select_cells(
    ledger: Tree, table: str | None, setting: str | None, status: str | None
) -> list[Tree]:
    """The cells that meet the conditions; a value that no cell has is refused."""
    rows = list(all_cells(ledger).values())
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


def as_json(ledger: Tree) -> str:
    """One line per cell, so that a difference between two versions shows the cell."""
    parts = []
    for key, value in ledger.items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {_compact(row)}" for row in value)
            parts.append(f' "{key}": [\n{lines}\n ]' if value else f' "{key}": []')
        else:
            parts.append(f' "{key}": {_compact(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _paper_cell(cell: numbers.PaperCell, groups: Sequence[MeasuredCase]) -> Tree:
    """A cell of the paper, with our numbers for it."""
    plain = numbers.find_cell(
        cell.table, cell.setting, cell.buffer, cell.method, "", cell.metric, cell.poison
    )
    printed = asdict(cell)
    value, note = printed.pop("value"), printed.pop("note")
    case = case_of(cell)
    return {
        "cell": name_of(cell),
        **printed,
        "paper": value,
        "paper_gain": round(value - plain.value, 2) if plain and cell.addition else None,
        "note": note,
        **_filled(name_of(cell), case, _best(case, groups), cell.metric, groups),
    }


def _own_cells(group: MeasuredCase, groups: Sequence[MeasuredCase]) -> list[Tree]:
    """Both metrics of a configuration that the paper prints no number for."""
    if is_exact(group.case) and any(case_of(cell) == group.case for cell in numbers.cells()):
        return []
    rows = []
    for metric in METRICS:
        if group.values(metric):
            name = cell_name(OURS, group.case, metric)
            filled = _filled(name, group.case, group, metric, groups)
            rows.append({"cell": name, "table": OURS, **group.about, "metric": metric, **filled})
    return rows


def _filled(
    name: str,
    case: Case,
    group: MeasuredCase | None,
    metric: str,
    groups: Sequence[MeasuredCase],
) -> Tree:
    """Status, numbers and records of a cell; not measured without a group or without the metric."""
    values = group.values(metric) if group else {}
    if group is None or not values:
        empty: Tree = {"status": "not measured", "ours": None, "gain": None, "departs": {}}
        return empty | {"records": [], "command": repeat_command(case, "paper")}
    words = describe_deviations(group.deviations)
    return {
        "status": status_of(group.records[0]) + (f": {words}" if words else ""),
        "ours": spread(values),
        "gain": gain(group, groups, metric),
        "departs": group.deviations,
        "records": [record.name for record in group.records if record.seed in values],
        "command": f"lider ledger check --cell {name}",
    }


def _best(case: Case, groups: Sequence[MeasuredCase]) -> MeasuredCase | None:
    """The configuration that is nearest to the one of the paper."""
    return max(
        (g for g in groups if replace(g.case, column="tuned") == case),
        key=lambda g: (status_of(g.records[0]) == "paper scale", is_exact(g.case), len(g.records)),
        default=None,
    )


def _comparison(group: MeasuredCase, groups: Sequence[MeasuredCase]) -> Tree | None:
    """An ablation of LiDER against its usual form, on the seeds that both have."""
    case = group.case
    compared = COMPARED.get(case.estimator or case.addition.partition("-")[2])
    if case.alpha is not None or case.beta is not None:
        compared = f"α {case.alpha}, β {case.beta} against the preset's"
    usual = of_same_size(replace(case.as_usual, addition="lider"), group, groups)
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
        **{metric: difference(group, usual, metric) for metric in METRICS},
    }


def _configuration(group: MeasuredCase, groups: Sequence[MeasuredCase]) -> Tree:
    """A row of the table of measured configurations."""
    records = group.records
    tuned = replace(group.case, column="tuned")
    printed = {c.metric: c.value for c in reversed(numbers.cells()) if case_of(c) == tuned}
    return {
        "label": group.case.label,
        **group.about,
        "scale": group.scale,
        "status": status_of(records[0]),
        "departs": group.deviations,
        **{m: spread(values) if (values := group.values(m)) else None for m in METRICS},
        **{f"{m}_gain": gain(group, groups, m) for m in METRICS},
        "paper": printed,
        "aia": _mean([record.class_incremental.aia for record in records]),
        "task_incremental": _mean([record.task_incremental.faa for record in records]),
        "gap": _mean([record.gap for record in records]),
        "steps": records[0].steps,
        "seconds": _mean([record.seconds for record in records]),
        "seconds_cpu": _mean([record.seconds_cpu for record in records]),
        "records": [record.name for record in records],
        "commands": [record.command for record in records],
    }


def _analyses(record: LedgerRecord) -> list[Tree]:
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
    """Every set of versions, and the number of runs that used it."""
    counts = Counter(json.dumps([r.versions, r.commit], sort_keys=True) for r in records)
    found = []
    for text, runs in sorted(counts.items()):
        versions, commit = json.loads(text)
        found.append({**versions, "commit": commit, "runs": runs})
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return rounded(fmean(known)) if known else None
