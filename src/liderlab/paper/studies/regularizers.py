"""The regularisation tables: ER-ACE and DER++ with sSGD, oEWC, oLAP or LiDER."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import numbers
from .accuracy_table import COLUMNS, accuracy_rows
from .cases import Addition, Case, Request, combinations
from .study_definition import Findings, FinishedCase, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100", "miniimagenet", "cub200")
METHODS = ("er-ace", "der++")
ADDITIONS: tuple[Addition, ...] = ("", "ssgd", "oewc", "olap", "lider")


def cases(request: Request) -> list[Case]:
    return combinations(SETTINGS, METHODS, ADDITIONS, request)


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = accuracy_rows(finished, {"faa": "regularizers-faa", "ff": "regularizers-ff"})
    note = (
        "The paper prints no weights for sSGD, oEWC and oLAP: the package's defaults, on the row "
        "of the method alone."
    )
    return Findings(rows, COLUMNS, [note])


def show(findings: Findings) -> Figure:
    from .charts import accuracy_bars

    series = {"alone": ("", "tuned"), "+ sSGD": ("ssgd", "tuned"), "+ oEWC": ("oewc", "tuned")}
    series |= {"+ oLAP": ("olap", "tuned"), "+ LiDER": ("lider", "tuned")}
    return accuracy_bars(findings.rows, series)


STUDY = Study(
    title="LiDER and other regularisers",
    paper=f"{numbers.TABLES['regularizers-faa']}; {numbers.TABLES['regularizers-ff']}",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
)
