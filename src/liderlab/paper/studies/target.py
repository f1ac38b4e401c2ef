"""Current task or buffer: at which door LiDER listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import numbers
from .accuracy_table import COLUMNS, accuracy_rows
from .cases import Addition, Case, Request, combinations
from .study_definition import Findings, FinishedCase, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100", "cifar100-pretrained", "miniimagenet", "cub200")
METHODS = ("er-ace", "der++")
ADDITIONS: tuple[Addition, ...] = ("", "lider-stream", "lider")


def cases(request: Request) -> list[Case]:
    return combinations(SETTINGS, METHODS, ADDITIONS, request)


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = accuracy_rows(finished, {"faa": "target-faa", "ff": "target-ff"})
    return Findings(rows, COLUMNS)


def show(findings: Findings) -> Figure:
    from .charts import accuracy_bars

    series = {
        "alone": ("", "tuned"),
        "+ LiDER (current task)": ("lider-stream", "tuned"),
        "+ LiDER (buffer)": ("lider", "tuned"),
    }
    return accuracy_bars(findings.rows, series)


STUDY = Study(
    title="LiDER on the current task or on the buffer",
    paper=f"{numbers.TABLES['target-faa']}; {numbers.TABLES['target-ff']}",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
)
