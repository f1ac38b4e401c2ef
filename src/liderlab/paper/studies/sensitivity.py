"""Sensitivity to LiDER's two weights: FAA over a grid of α and β, minus its mean."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from .cases import Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn, grid
from .study_rows import CASE_COLUMNS, SEEDS, by_case, describe, spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHTS = (0.01, 0.1, 0.3, 0.5)
SMOKE_WEIGHTS = (0.01, 0.3)
COLUMNS = [
    TableColumn("setting", ("setting",)),
    *CASE_COLUMNS[:2],
    TableColumn("α", ("alpha",)),
    TableColumn("β", ("beta",)),
    TableColumn("FAA ↑", ("faa", "faa_std")),
    TableColumn("from the mean", ("from_mean",), sign=True),
    SEEDS,
]


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = [
        {
            **describe(case, runs),
            "alpha": case.alpha,
            "beta": case.beta,
            **spreads(runs, lambda run: {"faa": run.metric("faa")}),
        }
        for case, runs in by_case(finished).items()
    ]
    for row in rows:
        row["from_mean"] = row["faa"] - fmean(r["faa"] for r in rows if _grid(r) == _grid(row))
    note = (
        "The paper shows this as colours without numbers; the grid spans the weights of its "
        "hyperparameter tables."
    )
    return Findings(rows, COLUMNS, [note])


def _grid(row: Row) -> tuple[str, int]:
    return row["setting"], row["paper_buffer"]


def show(findings: Findings) -> Figure:
    from .charts import Matrix, matrices

    panels = []
    for setting, buffer in dict.fromkeys(_grid(row) for row in findings.rows):
        rows = [row for row in findings.rows if _grid(row) == (setting, buffer)]
        alphas, betas = (sorted({row[key] for row in rows}) for key in ("alpha", "beta"))
        cell = {(row["alpha"], row["beta"]): row["from_mean"] for row in rows}
        values = [[cell.get((a, b)) for b in betas] for a in alphas]
        mean = fmean(row["faa"] for row in rows)
        title = f"{rows[0]['benchmark']}, buffer {rows[0]['buffer']}"
        title += ", pre-trained" if "pretrained" in setting else ""
        panels.append(Matrix(f"{title}\nmean FAA {mean:.1f} %", "β", "α", betas, alphas, values))
    return matrices(panels, "FAA − mean FAA (points)")


LIDER = {"method": ("er-ace",), "addition": ("lider",)}
STUDY = Study(
    title="Sensitivity to α and β",
    paper="supplementary figure fig:alphabeta: sensitivity of ER-ACE + LiDER to α and β",
    settings=("cifar100", "cifar100-pretrained"),
    variants=grid(**LIDER, alpha=WEIGHTS, beta=WEIGHTS),
    smoke_variants=grid(**LIDER, alpha=SMOKE_WEIGHTS, beta=SMOKE_WEIGHTS),
    compute=compute,
    show=show,
)
