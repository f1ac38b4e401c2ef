"""The buffer guessing game: does the network give away which samples it rehearses?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...functional.statistics import paired_difference, summarise
from .accuracy_table import by_case, describe
from .cases import Addition, Case, Request, combinations
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100",)
BUFFERS = (200, 500, 2000, 5000)
FEW_BUFFERS = (200, 500)
ADDITIONS: tuple[Addition, ...] = ("", "lider")
PERTURBATIONS = {"smoke": 8, "cpu": 16, "paper": 64}
COLUMNS = [
    TableColumn("run on", ("benchmark",)),
    TableColumn("buffer", ("buffer",), digits=0),
    TableColumn("method", ("label",)),
    TableColumn("AUC", ("auc", "auc_std"), digits=3),
    TableColumn("ΔAUC [95 %]", ("gain", "gain_low", "gain_high"), digits=3, sign=True),
    TableColumn("of task 1 in memory", ("in_memory",), digits=0),
    TableColumn("seeds", ("seeds",), digits=0),
]


def cases(request: Request) -> list[Case]:
    sizes = FEW_BUFFERS if request.smoke else BUFFERS
    return combinations(SETTINGS, ("er-ace",), ADDITIONS, request, sizes)


def measure(path: Path, scale: str) -> dict[str, Any]:
    """AUC and ROC curve of the game; AUC None if nothing, or everything, is in memory."""
    from ...analysis.guessing import found_in, guessing_game
    from .finished_run import open_finished_run, seeded

    run = open_finished_run(path)
    first = run.stream.tasks[0]
    x, y = run.raw(first.train)
    inside = found_in(run.memory["x"][run.memory["task"] == 0], x)
    found: dict[str, Any] = {"in_memory": int(inside.sum()), "samples": len(y)}
    if not 0 < found["in_memory"] < len(y):
        return {**found, "auc": None, "false_positive_rate": [], "true_positive_rate": []}
    game = guessing_game(
        run.model,
        inside,
        (run.inputs(x), y),
        task_classes=first.classes,
        perturbations=PERTURBATIONS[scale],
        normalisation=run.stream.transform,
        generator=seeded(),
    ).to_dict()
    kept = ("auc", "false_positive_rate", "true_positive_rate")
    return found | {name: game[name] for name in kept}


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    groups = by_case(finished)
    rows: list[Row] = []
    curves = []
    for case, runs in groups.items():
        aucs = {run.case.seed: run.measured["auc"] for run in runs}
        known = [value for value in aucs.values() if value is not None]
        row: Row = describe(case, runs)
        if spread := summarise(known):
            row |= {"auc": spread.mean, "auc_std": spread.std}
        row["in_memory"] = sum(run.measured["in_memory"] for run in runs) / len(runs)
        if case.addition:
            row |= _difference(runs, groups)
        rows.append(row)
        first = {name: runs[0].measured[f"{name}_positive_rate"] for name in ("false", "true")}
        about = {key: row.get(key) for key in ("label", "buffer", "auc")}
        curves.append(about | first)
    notes = [
        "AUC: chance that a rehearsed sample of the first task scores above another one; 0.5 is "
        "what guessing gives. The paper shows curves without numbers, and says that LiDER lowers "
        "them and that small buffers raise them.",
    ]
    if request.seeds > 1:
        notes.append("The curves are those of the first seed.")
    return Findings(rows, COLUMNS, notes, {"curves": curves})


def _difference(runs: Sequence[FinishedCase], groups: dict[Case, list[FinishedCase]]) -> Row:
    plain = groups.get(replace(runs[0].case.unseeded, addition=""), [])
    treated, base = ({run.case.seed: run.measured["auc"] for run in r} for r in (runs, plain))
    found = paired_difference(treated, base)
    if found is None:
        return {}
    return {"gain": found.mean, "gain_low": found.low, "gain_high": found.high}


def show(findings: Findings) -> Figure:
    from .charts import Line, Panel, curves

    panels = []
    for buffer in dict.fromkeys(curve["buffer"] for curve in findings.data["curves"]):
        here = [c for c in findings.data["curves"] if c["buffer"] == buffer]
        lines = [Line(c["label"], c["false"], c["true"]) for c in here]
        known = [f"{c['auc']:.2f}" for c in here if c["auc"] is not None]
        title = f"buffer {buffer}, AUC {' / '.join(known)}"
        axes = ("false positive rate", "true positive rate")
        panels.append(Panel(title, *axes, lines, roc=True))
    return curves(panels)


STUDY = Study(
    title="The buffer guessing game",
    paper="figure fig:buffgam: ROC curves for the buffer guessing game",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
    measure=measure,
)
