"""Flatness, first way: what Gaussian noise in the weights does to loss and accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...functional.statistics import summarise
from .accuracy_table import by_case, describe
from .cases import Case, Request, chosen_settings, over_seeds
from .flatness import SETTINGS, flatness_cases
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMAS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06)
SAMPLES = {"smoke": 200, "cpu": 500, "paper": 5000}
DRAWS = {"smoke": 4, "cpu": 10, "paper": 20}
COLUMNS = [
    TableColumn("run on", ("benchmark",)),
    TableColumn("buffer", ("buffer",), digits=0),
    TableColumn("method", ("label",)),
    TableColumn("σ", ("sigma",), digits=3),
    TableColumn("loss", ("loss", "loss_std")),
    TableColumn("accuracy", ("accuracy", "accuracy_std")),
    TableColumn("seeds", ("seeds",), digits=0),
]


def cases(request: Request) -> list[Case]:
    return over_seeds(flatness_cases(chosen_settings(SETTINGS, request)), request)


def measure(path: Path, scale: str) -> dict[str, Any]:
    """Loss and accuracy on training images of all tasks, under growing noise."""
    from ...analysis.weight_noise import weight_perturbation
    from .finished_run import open_finished_run, seeded

    run = open_finished_run(path)
    x, y = run.some_training(SAMPLES[scale])
    shaken = weight_perturbation(
        run.model, x, y, sigmas=SIGMAS, draws=DRAWS[scale], generator=seeded()
    )
    return shaken.to_dict()


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows: list[Row] = []
    groups = by_case(finished)
    for case, runs in groups.items():
        for place, sigma in enumerate(SIGMAS):
            row: Row = {**describe(case, runs), "sigma": sigma}
            for key in ("loss", "accuracy"):
                means = [
                    sum(run.measured[key][place]) / len(run.measured[key][place]) for run in runs
                ]
                if found := summarise(means):
                    row |= {key: found.mean, f"{key}_std": found.std}
            rows.append(row)
    note = (
        "Mean over draws of noise N(0, σ²) in every weight; on training images of all tasks. The "
        "paper shows curves without numbers."
    )
    noise = {case.label: [run.measured for run in runs] for case, runs in groups.items()}
    return Findings(rows, COLUMNS, [note], {"noise": noise})


def show(findings: Findings) -> Figure:
    from ...analysis import plots
    from ...analysis.weight_noise import WeightPerturbation

    return plots.draw_weight_perturbation(
        {
            label: [WeightPerturbation.from_dict(tree) for tree in trees]
            for label, trees in findings.data["noise"].items()
        }
    )


STUDY = Study(
    title="Robustness to perturbed weights",
    paper="figure fig:pert_hess, left: robustness against weight perturbations",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
    measure=measure,
)
