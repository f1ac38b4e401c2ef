"""The buffer guessing game: does the network give away which samples it rehearses?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cases import Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn, grid
from .study_rows import CASE_COLUMNS, SEEDS, by_case, describe, gain_over, spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERTURBATIONS = {"smoke": 8, "cpu": 16, "paper": 64}
RATES = ("false_positive_rate", "true_positive_rate")
COLUMNS = [
    *CASE_COLUMNS,
    TableColumn("AUC", ("auc", "auc_std"), digits=3),
    TableColumn("ΔAUC [95 %]", ("gain", "gain_low", "gain_high"), digits=3, sign=True),
    TableColumn("of task 1 in memory", ("in_memory",), digits=0),
    SEEDS,
]


def measure(path: Path, scale: str) -> dict[str, Any]:
    """AUC and ROC curve of the game; AUC None if no sample, or every sample, is in memory."""
    from ...analysis.guessing import guessing_game
    from .finished_run import open_finished_run, seeded

    run = open_finished_run(path)
    x, y, inside = run.first_task()
    found: dict[str, Any] = {"in_memory": int(inside.sum()), "samples": len(y)}
    if not 0 < found["in_memory"] < len(y):
        return {**found, "auc": None, **{rate: [] for rate in RATES}}
    game = guessing_game(
        run.model,
        inside,
        (run.inputs(x), y),
        task_classes=run.stream.tasks[0].classes,
        perturbations=PERTURBATIONS[scale],
        normalisation=run.stream.transform,
        generator=seeded(),
    ).to_dict()
    return found | {name: game[name] for name in ("auc", *RATES)}


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    groups = by_case(finished)
    rows: list[Row] = []
    curves = []
    for case, runs in groups.items():
        row = describe(case, runs) | spreads(runs, _numbers)
        if case.addition:
            plain = groups.get(replace(case, addition=""), [])
            row |= gain_over(plain, runs, lambda run: run.measured["auc"])
        rows.append(row)
        about = {key: row[key] for key in ("label", "buffer", "auc")}
        curves.append(about | {rate.partition("_")[0]: runs[0].measured[rate] for rate in RATES})
    notes = [
        "AUC: chance that a rehearsed sample of the first task scores above another one; 0.5 is "
        "chance. The paper shows curves without numbers, and says that LiDER lowers "
        "them and that small buffers raise them.",
    ]
    if request.seeds > 1:
        notes.append("The curves are those of the first seed.")
    return Findings(rows, COLUMNS, notes, {"curves": curves})


def _numbers(run: FinishedCase) -> dict[str, float | None]:
    return {name: run.measured[name] for name in ("auc", "in_memory")}


def show(findings: Findings) -> Figure:
    from .charts import Line, Panel, curves

    panels = []
    for buffer in dict.fromkeys(curve["buffer"] for curve in findings.data["curves"]):
        here = [c for c in findings.data["curves"] if c["buffer"] == buffer]
        lines = [Line(c["label"], c["false"], c["true"]) for c in here]
        known = [f"{c['auc']:.2f}" for c in here if c["auc"] is not None]
        title = f"buffer {buffer}, AUC {' / '.join(known)}"
        panels.append(Panel(title, "false positive rate", "true positive rate", lines, roc=True))
    return curves(panels)


STUDY = Study(
    title="The buffer guessing game",
    paper="figure fig:buffgam: ROC curves for the buffer guessing game",
    settings=("cifar100",),
    buffers=(200, 500, 2000, 5000),
    smoke_buffers=2,
    variants=grid(method=("er-ace",), addition=("", "lider")),
    compute=compute,
    show=show,
    measure=measure,
    needs_memory=True,
)
