"""Runs that differ in their seed alone, seen as one row of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...config.presets import presets
from ..run_records import Record, by_seed, differing, essence

PaperKey = tuple[str, int | None, str, bool]
PaperNumbers = Mapping[PaperKey, Mapping[str, float]]
"""What a paper reports: (setting, buffer, method, with LiDER) → metric → number. The setting is
that of a preset (`cifar100-pretrained`), or a benchmark's name; the buffer is None for a method
without memory."""


@dataclass(frozen=True)
class Group:
    """One row. note: what tells it from another row of the same label, if there is one."""

    label: str
    note: str
    runs: tuple[Record, ...]

    @property
    def first(self) -> Record:
        return self.runs[0]

    @property
    def setting(self) -> tuple[Any, ...]:
        """Rows of one setting can be compared."""
        run = self.first
        backbone = run.config["backbone"]["name"]
        return run.benchmark, run.tasks, run.config["memory"]["size"], backbone, run.scale

    def values(self, setting: str, metric: str) -> dict[int, float]:
        """A metric by seed, where it is defined."""
        return by_seed(self.runs, setting, metric)


def grouped(records: Sequence[Record]) -> list[Group]:
    """The rows, in the order in which their first runs were given."""
    by_essence: dict[str, list[Record]] = {}
    for record in records:
        key = json.dumps(essence(record.config), sort_keys=True, default=str)
        by_essence.setdefault(key, []).append(record)
    rows = [Group(runs[0].label, "", tuple(runs)) for runs in by_essence.values()]
    return [Group(row.label, _note(row, rows), row.runs) for row in rows]


def _note(row: Group, rows: Sequence[Group]) -> str:
    """The values that no other row of the same label and setting has."""
    alike = [r for r in rows if (r.label, r.setting) == (row.label, row.setting)]
    fields = differing([essence(r.first.config) for r in alike])
    own = essence(row.first.config)
    return ", ".join(f"{_short(f)} {_plain(own.get(f))}" for f in fields)


def _short(field: str) -> str:
    return field.removeprefix("regularizers.").removeprefix("training.")


def _plain(value: Any) -> str:
    return "–" if value is None else str(value)


@dataclass(frozen=True)
class Partner:
    """The same without LiDER. also: other fields that differ, so that LiDER is not all there is."""

    group: Group
    also: tuple[str, ...]


def without_lider(row: Group, rows: Sequence[Group]) -> Partner | None:
    """The row that differs from this one in LiDER alone, or in as little else as possible."""
    if "lider" not in row.first.regularizers:
        return None
    rest = [name for name in row.first.regularizers if name != "lider"]
    partners = [
        Partner(other, tuple(_besides_lider(row, other)))
        for other in rows
        if other.setting == row.setting
        and other.first.method == row.first.method
        and other.first.regularizers == rest
    ]
    return min(partners, key=lambda partner: len(partner.also), default=None)


def _besides_lider(row: Group, other: Group) -> list[str]:
    fields = differing([essence(row.first.config), essence(other.first.config)])
    return [field for field in fields if not field.startswith("regularizers.lider")]


def in_paper(row: Group, paper: PaperNumbers) -> dict[str, float]:
    """The paper's numbers for this row, by metric; none if it has another addition than LiDER."""
    run = row.first
    if set(run.regularizers) - {"lider"} or run.config["memory"].get("poison"):
        return {}
    preset = presets().get(str(run.config.get("preset")))
    setting = preset.setting if preset else run.benchmark
    return dict(paper.get((setting, run.buffer, run.method, "lider" in run.regularizers), {}))
