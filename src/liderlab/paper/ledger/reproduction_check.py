"""Checks the ledger: runs one cell again and compares the result with its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
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
from .measured_cases import METRICS
from .record import LedgerRecord, Tree
from .record_collection import make_record

DECISIVE = ("liderlab", "torch", "numpy", "processor", "instructions", "threads")
"""Versions on which the bits of a result depend."""
ONE_SEED = 1.0  # percentage points allowed where a single seed shows no spread


@dataclass(frozen=True)
class CheckOutcome:
    """A record and its repetition.

    other_versions: the versions that differ, as (committed, here). differences: for each value
    that differs, the largest difference in percentage points, or None if it is not a number.
    allowed: the points by which FAA and FF may differ.
    """

    committed: LedgerRecord
    now: LedgerRecord
    other_versions: dict[str, tuple[Any, Any]]
    differences: dict[str, float | None]
    allowed: dict[str, float]

    @property
    def agrees(self) -> bool:
        """With the same versions: to the bit. Otherwise: FAA and FF as close as allowed."""
        if not self.other_versions and not any(self.allowed.values()):
            return not self.differences
        return all((self.differences.get(m) or 0.0) <= self.allowed[m] for m in METRICS)

    def as_tree(self) -> Tree:
        """All of it as plain values."""
        return {
            "record": self.committed.name,
            "agrees": self.agrees,
            "committed": self.committed.class_incremental.model_dump(),
            "now": self.now.class_incremental.model_dump(),
            "apart": self.differences,
            "allowed": self.allowed,
            "other_versions": self.other_versions,
        }

    def lines(self) -> Iterator[str]:
        """All of it in sentences."""
        for metric in METRICS:
            a, b = self.committed.metric(metric), self.now.metric(metric)
            if a is not None and b is not None:
                yield (
                    f"{metric.upper()}: committed {a:.4f}, now {b:.4f}, difference {b - a:+.4f} "
                    f"(allowed: {self.allowed[metric]:.4f})"
                )
        for name, (before, here) in self.other_versions.items():
            yield f"{name}: committed {before}, here {here}"
        if self.differences:
            yield f"not equal: {', '.join(self.differences)}"
        else:
            exact = " and weights" if self.committed.network and self.now.network else ""
            yield f"equal: FAA, FF, accuracy matrix{exact}"


def records_of_cell(cell: str, ledger: Tree, records: Sequence[LedgerRecord]) -> list[LedgerRecord]:
    """The records behind a cell, by seed; refuses a cell that was not measured."""
    cells = all_cells(ledger)
    if cell not in cells:
        raise unknown_cell(cell, cells)
    if cells[cell]["ours"] is None:
        raise UserError(
            f"{cell} was not measured, so there is nothing to compare with; this measures it: "
            f"{cells[cell]['command']}"
        )
    return [record for record in records if record.name in cells[cell]["records"]]


def record_of_seed(records: Sequence[LedgerRecord], seed: int | None) -> LedgerRecord:
    """The record of that seed; by default the first."""
    for record in records:
        if seed is None or record.seed == seed:
            return record
    known = ", ".join(str(record.seed) for record in records)
    raise UserError(f"seed {seed} was not measured; these were: {known}")


def repeat_run(
    record: LedgerRecord, folder: Path, listener: Callable[..., None] | None = None
) -> LedgerRecord:
    """Run, or resume, the record's configuration with the same number of threads."""
    from ...runs.execute import run

    config = stored_config({**record.config, "keep_tasks": False, "tracker": []})
    run(config, folder, existing="resume", listener=listener)
    return make_record(RunFolder(folder), CampaignRun("check", record.case, record.scale))


def compare(
    committed: LedgerRecord,
    now: LedgerRecord,
    records: Sequence[LedgerRecord],
    tolerance: float | None = None,
) -> CheckOutcome:
    """Compare a record with its repetition.

    records: all seeds of the cell. tolerance: in points; by default 0 with the same versions, and
    otherwise `seed_tolerance`.
    """
    other = {
        name: (committed.versions.get(name), now.versions.get(name))
        for name in DECISIVE
        if committed.versions.get(name) != now.versions.get(name)
    }
    if tolerance is None and other:
        allowed = {metric: seed_tolerance(records, metric) for metric in METRICS}
    else:
        allowed = dict.fromkeys(METRICS, tolerance or 0.0)
    return CheckOutcome(committed, now, other, _differences(committed, now), allowed)


def seed_tolerance(records: Sequence[LedgerRecord], metric: str) -> float:
    """How far one more seed may lie from the mean: half of Student's 95 % prediction interval,

    t(0.975, n − 1) · s · √(1 + 1/n)
    """
    values = [value for record in records if (value := record.metric(metric)) is not None]
    n = len(values)
    if n < 2:
        return ONE_SEED
    return t_quantile(0.975, n - 1) * stdev(values) * math.sqrt(1 + 1 / n)


def _differences(committed: LedgerRecord, now: LedgerRecord) -> dict[str, float | None]:
    """FAA, FF, the accuracy matrix and the weights, where they are not equal."""
    found: dict[str, float | None] = {}
    for metric in METRICS:
        a, b = committed.metric(metric), now.metric(metric)
        if a != b:
            found[metric] = None if a is None or b is None else abs(a - b)
    if committed.matrix != now.matrix:
        pairs = zip(chain(*committed.matrix), chain(*now.matrix), strict=False)
        gaps = [abs(a - b) for a, b in pairs if a is not None and b is not None]
        found["accuracy matrix"] = max(gaps, default=None)
    if committed.network and now.network and committed.network != now.network:
        found["weights"] = None
    return found
