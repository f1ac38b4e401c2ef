"""Runs one cell of the ledger again, and compares it with what is committed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev
from typing import Any

from ...config.merging import stored_config
from ...errors import UserError
from ...functional.statistics import t_quantile
from ...runs.folder import RunFolder
from .campaign import CampaignRun
from .cells import unknown_cell
from .ledger_document import all_cells
from .record import LedgerRecord, Tree
from .record_collection import make_record

DECIDE = ("liderlab", "torch", "numpy", "processor", "instructions", "threads")
"""Versions on which the bits of a result depend."""
ONE_SEED = 1.0  # percentage points that may lie between, where a single seed shows no spread
METRICS = ("faa", "ff")


@dataclass(frozen=True)
class CheckOutcome:
    """other: the versions that differ, as (committed, here). apart: what is not equal, with the
    larger of the differences in percentage points where there is one. allowed: the points that FAA
    and FF may differ by."""

    committed: LedgerRecord
    now: LedgerRecord
    other: dict[str, tuple[Any, Any]]
    apart: dict[str, float | None]
    allowed: dict[str, float]

    @property
    def agrees(self) -> bool:
        """With the same versions: to the bit. Otherwise FAA and FF within what is allowed."""
        if not self.other and not any(self.allowed.values()):
            return not self.apart
        return all((self.apart.get(m) or 0.0) <= self.allowed[m] for m in METRICS)


def records_of_cell(cell: str, ledger: Tree, records: Sequence[LedgerRecord]) -> list[LedgerRecord]:
    """The records behind a cell, by seed; says so if there are none."""
    cells = all_cells(ledger)
    if cell not in cells:
        raise unknown_cell(cell, cells)
    if cells[cell]["ours"] is None:
        raise UserError(
            f"{cell} was not measured, so there is nothing to compare with; this measures it: "
            f"{cells[cell]['command']}"
        )
    return [record for record in records if record.name in cells[cell]["records"]]


def record_of_seed(runs: Sequence[LedgerRecord], seed: int | None) -> LedgerRecord:
    """The run of that seed; by default the first."""
    for run in runs:
        if seed is None or run.seed == seed:
            return run
    there = ", ".join(str(run.seed) for run in runs)
    raise UserError(f"seed {seed} was not measured; these were: {there}")


def repeat_run(
    record: LedgerRecord, folder: Path, listener: Callable[..., None] | None = None
) -> LedgerRecord:
    """The same configuration with the same threads; goes on with what is in the folder."""
    from ...runs.execute import run

    config = stored_config({**record.config, "keep_tasks": False, "tracker": []})
    run(config, folder, existing="resume", listener=listener)
    return make_record(RunFolder(folder), CampaignRun("check", record.case, record.scale))


def compare(
    committed: LedgerRecord,
    now: LedgerRecord,
    runs: Sequence[LedgerRecord],
    tolerance: float | None = None,
) -> CheckOutcome:
    """runs: all seeds of the cell. tolerance: points; by default none with the same versions, and
    otherwise what another seed could make: Student's 95 % interval for one more value,

        t(0.975, n − 1) · s · √(1 + 1/n)
    """
    other = {
        name: (committed.versions.get(name), now.versions.get(name))
        for name in DECIDE
        if committed.versions.get(name) != now.versions.get(name)
    }
    if tolerance is not None:
        allowed = dict.fromkeys(METRICS, tolerance)
    elif other:
        allowed = {metric: seed_tolerance(runs, metric) for metric in METRICS}
    else:
        allowed = dict.fromkeys(METRICS, 0.0)
    return CheckOutcome(committed, now, other, _apart(committed, now), allowed)


def seed_tolerance(runs: Sequence[LedgerRecord], metric: str) -> float:
    """How far one more seed may lie from the mean."""
    values = [value for run in runs if (value := run.metric(metric)) is not None]
    n = len(values)
    if n < 2:
        return ONE_SEED
    return t_quantile(0.975, n - 1) * stdev(values) * math.sqrt(1 + 1 / n)


def _apart(committed: LedgerRecord, now: LedgerRecord) -> dict[str, float | None]:
    """FAA, FF, the accuracy matrix, and the weights, where they are not equal."""
    found: dict[str, float | None] = {}
    for metric in METRICS:
        a, b = committed.metric(metric), now.metric(metric)
        if a != b:
            found[metric] = None if a is None or b is None else abs(a - b)
    if committed.matrix != now.matrix:
        pairs = zip(_flat(committed.matrix), _flat(now.matrix), strict=False)
        gaps = [abs(a - b) for a, b in pairs if a is not None and b is not None]
        found["accuracy matrix"] = max(gaps, default=None)
    if committed.network and now.network and committed.network != now.network:
        found["weights"] = None
    return found


def _flat(matrix: list[list[float | None]]) -> list[float | None]:
    return [value for row in matrix for value in row]
