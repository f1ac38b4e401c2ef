"""The definition of a study: the runs it needs, the findings it computes, the figure it draws.

A study is a value. `run_study` runs, resumes and writes all of them in the same way. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runs.planned_run import PlannedRun
from .cases import Case, Request, chosen_settings, preset_buffers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
"""One line of a study's table: plain values by name."""
Variant = dict[str, Any]
"""Fields of a case, without its setting, buffer and seed."""
RunAll = Callable[[Sequence[PlannedRun]], dict[str, str]]
"""Runs or resumes the given runs; returns the reason for each that failed, by name."""


@dataclass(frozen=True)
class FinishedCase:
    """A finished run of a study. result: its result.json. measured: from the study's `measure`."""

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
    """One key shows a value, two show mean ± std, three show mean [low, high]."""

    title: str
    keys: tuple[str, ...]
    digits: int = 2
    sign: bool = False


@dataclass(frozen=True)
class Findings:
    """A study's table, the notes under it, and further data for its figure, ready for JSON."""

    rows: list[Row]
    columns: list[TableColumn]
    notes: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def noting(self, *notes: str) -> Findings:
        return replace(self, notes=[*self.notes, *notes])


def _nothing(finished: Sequence[FinishedCase], request: Request) -> Findings:
    """The findings of a study whose `execute` has made them already."""
    return Findings([], [])


@dataclass(frozen=True)
class Executed:
    """A study that planned its own runs. failed: the reason for each run that failed, by name."""

    findings: Findings
    runs: list[PlannedRun]
    failed: dict[str, str]


@dataclass(frozen=True)
class Study:
    """One table or figure of the paper.

    The runs: each variant with each buffer in each setting (of the paper, by the presets' names),
    and each of `bounds`, which are methods without a buffer, in each setting. buffers: by default
    all that the setting has presets for. At smoke scale the first `smoke_buffers` of them and
    `smoke_variants` are enough.

    compute: findings from the finished runs. show: the figure. measure: analyses the run in
    a folder, at a scale; `lider analyze` calls it, too. Its value is stored in a file.
    needs_memory: whether `measure` uses the memory of the run. execute: in the place of all that, a
    study that plans runs by the results of others (the matrix).
    """

    title: str
    paper: str
    show: Callable[[Findings], Figure]
    compute: Callable[[Sequence[FinishedCase], Request], Findings] = _nothing
    execute: Callable[[Request, Path, RunAll], Executed] | None = None
    measure: Callable[[Path, str], dict[str, Any]] | None = None
    needs_memory: bool = False
    settings: tuple[str, ...] = ()
    variants: Sequence[Variant] = ()
    buffers: Sequence[int] | None = None
    bounds: Sequence[str] = ()
    smoke_buffers: int = 1
    smoke_variants: Sequence[Variant] | None = None

    def cases(self, request: Request) -> list[Case]:
        """Every run of the study, all seeds of a case in a row."""
        smoke = request.smoke
        variants = self.smoke_variants if smoke and self.smoke_variants else self.variants
        found = []
        for setting in chosen_settings(self.settings, request):
            found += [Case(setting, None, method) for method in self.bounds]
            buffers = self.buffers or preset_buffers(setting)
            for buffer in buffers[: self.smoke_buffers if smoke else None]:
                found += [Case(setting, buffer, **variant) for variant in variants]
        return [replace(case, seed=seed) for case in found for seed in range(request.seeds)]


def grid(**values: Iterable[Any]) -> list[Variant]:
    """Every combination of these values.

    >>> grid(method=["er-ace"], addition=["", "lider"])
    [{'method': 'er-ace', 'addition': ''}, {'method': 'er-ace', 'addition': 'lider'}]
    """
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]
