"""Runs that differ in their seed alone, as one row of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..config.identity import experiment_fields
from ..functional.statistics import ConfidenceInterval, mean_interval, paired_difference
from .formatting import plain
from .run_records import RunRecord

ROUNDING = 1e-9  # points of accuracy


@dataclass(frozen=True)
class SeedGroup:
    """Runs of one experiment. note: the values that tell it from groups of the same label."""

    label: str
    note: str
    runs: tuple[RunRecord, ...]

    @property
    def first(self) -> RunRecord:
        return self.runs[0]

    @property
    def setting(self) -> tuple[Any, ...]:
        """The values that groups must share to be compared."""
        run = self.first
        backbone = run.config["backbone"]["name"]
        return run.stream, run.tasks, run.config["memory"]["size"], backbone, run.scale

    def values(self, setting: str, metric: str) -> dict[int, float]:
        """A metric by seed, where it is defined; the mean, if a seed was run more than once."""
        found: dict[int, list[float]] = {}
        for run in self.runs:
            if (value := run.metric(setting, metric)) is not None:
                found.setdefault(run.seed, []).append(value)
        return {seed: fmean(values) for seed, values in found.items()}


def group_by_seed(records: Sequence[RunRecord]) -> list[SeedGroup]:
    """The groups, in the order in which their first runs were given."""
    members: dict[str, list[RunRecord]] = {}
    for record in records:
        members.setdefault(experiment_key(record.config), []).append(record)
    groups = [SeedGroup(runs[0].label, "", tuple(runs)) for runs in members.values()]
    return [SeedGroup(group.label, _note(group, groups), group.runs) for group in groups]


def _note(group: SeedGroup, groups: Sequence[SeedGroup]) -> str:
    """The values of the fields in which groups of the same label and setting differ."""
    alike = [g for g in groups if (g.label, g.setting) == (group.label, group.setting)]
    values = experiment_fields(group.first.config)
    fields = differing_experiment_fields([g.first for g in alike])
    names = (field.removeprefix("regularizers.").removeprefix("training.") for field in fields)
    return ", ".join(f"{n} {plain(values.get(f))}" for n, f in zip(names, fields, strict=True))


def seed_difference(
    ours: Mapping[int, float], theirs: Mapping[int, float]
) -> ConfidenceInterval | None:
    """ours − theirs, paired by seed; without a common seed the difference of the means, n = 0.

    Rounding is no difference.

    >>> seed_difference({0: 0.1 + 0.2, 1: 5.0}, {0: 0.3, 1: 5.0}).mean
    0.0
    """
    if paired := paired_difference(ours, theirs):
        same = max(abs(paired.mean), paired.half or 0.0) < ROUNDING
        return mean_interval([0.0] * paired.n) if same else paired
    if not ours or not theirs:
        return None
    return ConfidenceInterval(fmean(ours.values()) - fmean(theirs.values()), None, None, 0)


@dataclass(frozen=True)
class RegularizerPair:
    """A group to compare another with. added: the regularisers that the other one has in addition.
    also: further fields in which the two differ."""

    without: SeedGroup
    added: tuple[str, ...]
    also: tuple[str, ...]


def pairs_without(group: SeedGroup, groups: Sequence[SeedGroup]) -> list[RegularizerPair]:
    """The groups of the same method with fewer regularisers, as few less as there are.

    For each choice of regularisers the group that differs in the fewest other fields. er-ace +
    LiDER + oEWC is compared with er-ace + LiDER and with er-ace + oEWC; with er-ace, if there is
    neither of them.
    """
    nearest: dict[frozenset[str], RegularizerPair] = {}
    for other in groups:
        pair = _pair(group, other)
        if pair is None:
            continue
        known = nearest.get(frozenset(pair.added))
        if known is None or len(pair.also) < len(known.also):
            nearest[frozenset(pair.added)] = pair
    return [pair for added, pair in nearest.items() if not any(less < added for less in nearest)]


def _pair(group: SeedGroup, other: SeedGroup) -> RegularizerPair | None:
    """None if the two differ in method or setting, or the other one has no fewer regularisers."""
    run, plain_run = group.first, other.first
    if (other.setting, plain_run.method) != (group.setting, run.method):
        return None
    if not set(plain_run.regularizers) < set(run.regularizers):
        return None
    added = tuple(name for name in run.regularizers if name not in plain_run.regularizers)
    own = tuple(f"regularizers.{name}" for name in added)
    fields = differing_experiment_fields([run, plain_run])
    also = (f for f in fields if not any(f == name or f.startswith(f"{name}.") for name in own))
    return RegularizerPair(other, added, tuple(also))


def experiment_key(config: Mapping[str, Any]) -> str:
    """The experiment as text: the same for configurations that differ in their seed alone."""
    return json.dumps(experiment_fields(config), sort_keys=True, default=str)


def differing_experiment_fields(records: Sequence[RunRecord]) -> list[str]:
    return differing([experiment_fields(record.config) for record in records])


def differing(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Fields whose values are not the same in all of these flat configurations, in their order.

    >>> differing([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1}])
    ['b']
    """
    fields = dict.fromkeys(field for config in configs for field in config)
    absent = object()
    return [
        field
        for field in fields
        if any(config.get(field, absent) != configs[0].get(field, absent) for config in configs)
    ]
