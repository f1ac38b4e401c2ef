"""Fixed or learned Lipschitz targets, with and without pre-training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import numbers
from .accuracy_table import COLUMNS, accuracy_rows
from .cases import Addition, Case, Request, combinations
from .study_definition import Findings, FinishedCase, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100", "cifar100-pretrained")
METHODS = ("der++", "er-ace")
ADDITIONS: tuple[Addition, ...] = ("lider-fixed", "lider")


def cases(request: Request) -> list[Case]:
    return combinations(SETTINGS, METHODS, ADDITIONS, request)


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = accuracy_rows(finished, {"faa": "fixed-target"}, against="lider-fixed")
    notes = ["ΔFAA: learned over fixed targets. Fixed ones stay where calibration put them."]
    notes += [
        f"The paper's {cell.value} for {cell.method} in {cell.setting}, buffer {cell.buffer}: "
        f"{cell.note}."
        for cell in numbers.cells()
        if cell.table == "fixed-target" and cell.note
    ]
    return Findings(rows, COLUMNS, notes)


def show(findings: Findings) -> Figure:
    from .charts import accuracy_bars

    series = {"fixed targets": ("lider-fixed", "tuned"), "learned targets": ("lider", "tuned")}
    return accuracy_bars(findings.rows, series)


STUDY = Study(
    title="Fixed or learned Lipschitz targets",
    paper=numbers.TABLES["fixed-target"],
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
)
