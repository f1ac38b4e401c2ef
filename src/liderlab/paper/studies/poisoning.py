"""Wrong labels in the buffer: DER++ with and without LiDER."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import numbers
from .accuracy_table import COLUMNS, accuracy_rows, by_case
from .cases import Addition, Case, Request, chosen_settings, over_seeds
from .study_definition import Findings, FinishedCase, Study, TableColumn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100",)
PROBABILITIES = (0.0, 0.01, 0.1, 0.25)
ADDITIONS: tuple[Addition, ...] = ("", "lider")


def cases(request: Request) -> list[Case]:
    found = [
        Case(setting, 500, "der++", addition, poison=p)
        for setting in chosen_settings(SETTINGS, request)
        for addition in ADDITIONS
        for p in PROBABILITIES
    ]
    return over_seeds(found, request)


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = accuracy_rows(finished, {"faa": "poisoning"})
    for row, case in zip(rows, by_case(finished), strict=True):
        row["poison"] = case.poison
    columns = [*COLUMNS[:4], TableColumn("p", ("poison",)), *COLUMNS[4:]]
    note = "p: probability of a wrong label; the paper prints it with a percent sign (.25 %)."
    return Findings(rows, columns, [note])


def show(findings: Findings) -> Figure:
    from .charts import Line, Panel, curves

    lines = []
    for label in dict.fromkeys(row["label"] for row in findings.rows):
        rows = [row for row in findings.rows if row["label"] == label]
        x = [row["poison"] for row in rows]
        lines.append(Line(label, x, [row["faa"] for row in rows], [row["faa_std"] for row in rows]))
        lines.append(Line(f"{label}, paper", x, [row["paper_faa"] for row in rows], paper=True))
    panel = Panel("buffer poisoning", "probability of a wrong label", "FAA (%)", lines)
    return curves([panel])


STUDY = Study(
    title="Robustness to buffer poisoning",
    paper=numbers.TABLES["poisoning"],
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
)
