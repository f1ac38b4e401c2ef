"""Measured cases: the records that differ in their seed alone, and statistics over their seeds.

No torch needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...config.identity import experiment_fields
from ...functional.statistics import mean_interval, paired_difference, summarise
from ..studies.cases import Case
from .deviations import deviations_from_paper
from .record import LedgerRecord, Tree, rounded

METRICS = ("faa", "ff")


@dataclass(frozen=True)
class MeasuredCase:
    """One configuration over its seeds; records: in the order of the seeds."""

    case: Case
    scale: str
    records: tuple[LedgerRecord, ...]

    def values(self, metric: str) -> dict[int, float]:
        """The metric by seed, where it is defined."""
        found = {record.seed: record.metric(metric) for record in self.records}
        return {seed: value for seed, value in found.items() if value is not None}

    @property
    def about(self) -> Tree:
        """The fields of the case that describe the configuration."""
        names = ("setting", "buffer", "method", "addition", "estimator", "alpha", "beta", "column")
        return {name: getattr(self.case, name) for name in names}

    @property
    def deviations(self) -> Tree:
        return deviations_from_paper(self.records[0])

    @property
    def size(self) -> Any:
        """Scale, epochs, network and benchmark: equal for configurations that can be compared."""
        config = self.records[0].config
        return self.scale, config["training"]["epochs"], config["backbone"], config["benchmark"]


def measured_cases(records: Sequence[LedgerRecord]) -> list[MeasuredCase]:
    """Group the records by everything but their seed."""
    found: dict[str, list[LedgerRecord]] = {}
    for record in records:
        fields = experiment_fields(record.config)
        key = json.dumps([record.scale, repr(record.case.unseeded), fields], sort_keys=True)
        found.setdefault(key, []).append(record)
    for runs in found.values():
        runs.sort(key=lambda record: record.seed)
    return [
        MeasuredCase(runs[0].case.unseeded, runs[0].scale, tuple(runs)) for runs in found.values()
    ]


def of_same_size(
    case: Case, group: MeasuredCase, groups: Sequence[MeasuredCase]
) -> MeasuredCase | None:
    """The measurement of `case` that can be compared with `group`: the one with most seeds."""
    same = [other for other in groups if (other.case, other.size) == (case, group.size)]
    return max(same, key=lambda other: len(other.records), default=None)


def spread(values: dict[int, float]) -> Tree:
    """Mean, sample standard deviation, Student's 95 % interval of the mean, and every seed's value:

        x̄ ± t(0.975, n − 1) · s / √n

    >>> spread({0: 70.0, 1: 72.0, 2: 71.0})["low"]
    68.5159
    """
    numbers = list(values.values())
    found, interval = summarise(numbers), mean_interval(numbers)
    assert found is not None, "a cell without values is not measured"
    return {
        "mean": rounded(found.mean),
        "std": rounded(found.std),
        "low": rounded(interval.low),
        "high": rounded(interval.high),
        "n": found.n,
        "seeds": {str(seed): value for seed, value in sorted(values.items())},
    }


def difference(treated: MeasuredCase, plain: MeasuredCase | None, metric: str) -> Tree | None:
    """treated − plain, paired by seed; None without a common seed."""
    found = plain and paired_difference(treated.values(metric), plain.values(metric))
    if not found:
        return None
    names = ("mean", "low", "high", "p")
    return {**{name: rounded(getattr(found, name)) for name in names}, "n": found.n}


def gain(group: MeasuredCase, groups: Sequence[MeasuredCase], metric: str) -> Tree | None:
    """The difference from the method alone at the same scale; None for the method itself."""
    if not group.case.addition:
        return None
    alone = replace(group.case.as_usual, addition="", column="tuned")
    return difference(group, of_same_size(alone, group, groups), metric)
