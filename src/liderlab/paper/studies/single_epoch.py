"""One pass over every task: GMED, DER++ and ER-ACE, 10 and 20 tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import numbers
from .accuracy_table import COLUMNS, accuracy_rows
from .cases import Addition, Case, Request, buffers, chosen_settings, over_seeds
from .study_definition import Findings, FinishedCase, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100-online20", "cifar100-online")
ROWS: tuple[tuple[str, Addition], ...] = (
    ("gmed", ""),
    ("der++", ""),
    ("der++", "lider"),
    ("er-ace", ""),
    ("er-ace", "lider"),
)


def cases(request: Request) -> list[Case]:
    found = [
        Case(setting, buffer, method, addition)
        for setting in chosen_settings(SETTINGS, request)
        for buffer in buffers(setting)[: 1 if request.smoke else None]
        for method, addition in ROWS
    ]
    return over_seeds(found, request)


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = accuracy_rows(finished, {"faa": "single-epoch", "ff": "single-epoch"})
    note = "The paper prints no hyperparameters for one epoch: its best ones for 50."
    return Findings(rows, COLUMNS, [note])


def show(findings: Findings) -> Figure:
    from .charts import accuracy_bars

    return accuracy_bars(findings.rows, {"alone": ("", "tuned"), "+ LiDER": ("lider", "tuned")})


STUDY = Study(
    title="One epoch per task",
    paper=numbers.TABLES["single-epoch"],
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
)
