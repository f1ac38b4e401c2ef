"""Wrong labels in the buffer: DER++ with and without LiDER."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import numbers
from .cases import Request, on_papers_data
from .study_definition import Findings, FinishedCase, Study, TableColumn, grid
from .study_rows import ACCURACY_COLUMNS, accuracy_rows, by_case

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = accuracy_rows(finished, {"faa": "poisoning"})
    for row, case in zip(rows, by_case(finished), strict=True):
        row["poison"] = case.poison
    columns = [*ACCURACY_COLUMNS[:4], TableColumn("p", ("poison",)), *ACCURACY_COLUMNS[4:]]
    note = "p: probability of a wrong label; the paper prints it with a percent sign (.25 %)."
    return Findings(rows, columns, [note])


def show(findings: Findings) -> Figure:
    from .charts import Line, Panel, curves

    lines = []
    for label in dict.fromkeys(row["label"] for row in findings.rows):
        rows = [row for row in findings.rows if row["label"] == label]
        x = [row["poison"] for row in rows]
        lines.append(Line(label, x, [row["faa"] for row in rows], [row["faa_std"] for row in rows]))
        if on_papers_data(rows[0]):
            printed = [row["paper_faa"] for row in rows]
            lines.append(Line(f"{label}, paper", x, printed, paper=True))
    return curves([Panel("buffer poisoning", "probability of a wrong label", "FAA (%)", lines)])


STUDY = Study(
    title="Robustness to buffer poisoning",
    paper=numbers.TABLES["poisoning"],
    settings=("cifar100",),
    buffers=(500,),
    variants=grid(method=("der++",), addition=("", "lider"), poison=(0.0, 0.01, 0.1, 0.25)),
    compute=compute,
    show=show,
)
