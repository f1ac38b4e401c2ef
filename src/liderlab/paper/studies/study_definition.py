"""What a study is: which runs it needs, what it finds in them, how that is shown. No torch needed.

A study is a value, and nothing else knows what any single one does. Running, resuming and writing
are the same for all of them: see `conduct`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runs.planned_run import PlannedRun as PlannedRun
from .cases import Case, Request

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
"""One line of a study's table: plain values by name."""


RunAll = Callable[[Sequence[PlannedRun]], dict[str, str]]
"""Runs or resumes every plan whose folder is not finished; returns why, for those that failed."""


@dataclass(frozen=True)
class FinishedCase:
    """A run that a study looks at: which case of the study it is, its folder, its result.json.

    measured: what the study's own `measure` found in it.
    """

    case: Case
    folder: Path
    result: dict[str, Any]
    measured: dict[str, Any] = field(default_factory=dict)

    def metric(self, name: str) -> float | None:
        """faa, ff, … class-incremental, in percent."""
        value: float | None = self.result["class_incremental"][name]
        return value


@dataclass(frozen=True)
class TableColumn:
    """A column of the table: one key is a value, two are mean ± std, three mean [low, high]."""

    title: str
    keys: tuple[str, ...]
    digits: int = 2
    sign: bool = False


@dataclass(frozen=True)
class Findings:
    """What a study found: the lines of its table, and whatever else its figure shows.

    notes: sentences that belong under the table. data: JSON-friendly.
    """

    rows: list[Row]
    columns: list[TableColumn]
    notes: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def noting(self, *notes: str) -> Findings:
        return replace(self, notes=[*self.notes, *notes])


@dataclass(frozen=True)
class Study:
    """settings: the paper's, by the presets' names. cases: the runs, one case each, every seed by
    itself. compute: rows from finished runs. show: the figure. measure: looks at one run's folder,
    at a scale; its value is kept beside the study's result, so that nothing is measured twice, and
    `lider analyze` calls it, too.
    """

    title: str
    paper: str
    settings: tuple[str, ...]
    cases: Callable[[Request], list[Case]]
    compute: Callable[[Sequence[FinishedCase], Request], Findings]
    show: Callable[[Findings], Figure]
    measure: Callable[[Path, str], dict[str, Any]] | None = None
