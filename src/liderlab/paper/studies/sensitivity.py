"""What LiDER's two weights do: FAA over a grid of α and β, as differences from its mean."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ...functional.statistics import summarise
from .accuracy_table import by_case, describe
from .cases import Case, Request, buffers, chosen_settings, over_seeds
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100", "cifar100-pretrained")
WEIGHTS = (0.01, 0.1, 0.3, 0.5)
FEW_WEIGHTS = (0.01, 0.3)
COLUMNS = [
    TableColumn("setting", ("setting",)),
    TableColumn("run on", ("benchmark",)),
    TableColumn("buffer", ("buffer",), digits=0),
    TableColumn("α", ("alpha",)),
    TableColumn("β", ("beta",)),
    TableColumn("FAA ↑", ("faa", "faa_std")),
    TableColumn("from the mean", ("from_mean",), sign=True),
    TableColumn("seeds", ("seeds",), digits=0),
]


def cases(request: Request) -> list[Case]:
    weights = FEW_WEIGHTS if request.smoke else WEIGHTS
    found = [
        Case(setting, buffer, "er-ace", "lider", alpha=alpha, beta=beta)
        for setting in chosen_settings(SETTINGS, request)
        for buffer in buffers(setting)[: 1 if request.smoke else None]
        for alpha in weights
        for beta in weights
    ]
    return over_seeds(found, request)


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows: list[Row] = []
    for case, runs in by_case(finished).items():
        found = summarise([v for run in runs if (v := run.metric("faa")) is not None])
        assert found is not None, "a rehearsal run always has a final accuracy"
        spread = {"faa": found.mean, "faa_std": found.std}
        rows.append({**describe(case, runs), "alpha": case.alpha, "beta": case.beta, **spread})
    for row in rows:
        same = [r["faa"] for r in rows if _grid(r) == _grid(row)]
        row["from_mean"] = row["faa"] - fmean(same)
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


STUDY = Study(
    title="Sensitivity to α and β",
    paper="supplementary figure fig:alphabeta: sensitivity of ER-ACE + LiDER to α and β",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
)
