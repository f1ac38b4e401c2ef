"""Flatness, first way: loss and accuracy under Gaussian noise in the weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cases import Request
from .study_definition import Findings, FinishedCase, Study, TableColumn, grid
from .study_rows import CASE_COLUMNS, SEEDS, by_case, describe, spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMAS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06)
SAMPLES = {"smoke": 200, "cpu": 500, "paper": 5000}
DRAWS = {"smoke": 4, "cpu": 10, "paper": 20}
COLUMNS = [
    *CASE_COLUMNS,
    TableColumn("σ", ("sigma",), digits=3),
    TableColumn("loss", ("loss", "loss_std")),
    TableColumn("accuracy", ("accuracy", "accuracy_std")),
    SEEDS,
]


def measure(path: Path, scale: str) -> dict[str, Any]:
    """Loss and accuracy on training images of all tasks, under growing noise."""
    from ...analysis.weight_noise import weight_perturbation
    from .finished_run import open_finished_run, seeded

    run = open_finished_run(path)
    x, y = run.some_training(SAMPLES[scale])
    perturbed = weight_perturbation(
        run.model, x, y, sigmas=SIGMAS, draws=DRAWS[scale], generator=seeded()
    )
    return perturbed.to_dict()


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = [
        describe(case, runs) | {"sigma": sigma} | spreads(runs, _means(place))
        for case, runs in by_case(finished).items()
        for place, sigma in enumerate(SIGMAS)
    ]
    note = (
        "Mean over draws of noise N(0, σ²) in every weight; on training images of all tasks. The "
        "paper shows curves without numbers."
    )
    noise = {case.label: [r.measured for r in runs] for case, runs in by_case(finished).items()}
    return Findings(rows, COLUMNS, [note], {"noise": noise})


def _means(place: int) -> Any:
    """A reader of the means over the draws of the place-th σ."""

    def read(run: FinishedCase) -> dict[str, float | None]:
        draws = {key: run.measured[key][place] for key in ("loss", "accuracy")}
        return {key: sum(values) / len(values) for key, values in draws.items()}

    return read


def show(findings: Findings) -> Figure:
    from ...analysis import plots
    from ...analysis.weight_noise import WeightPerturbation

    noise = findings.data["noise"]
    return plots.draw_weight_perturbation(
        {label: [WeightPerturbation.from_dict(t) for t in trees] for label, trees in noise.items()}
    )


STUDY = Study(
    title="Robustness to perturbed weights",
    paper="figure fig:pert_hess, left: robustness against weight perturbations",
    settings=("cifar100",),
    buffers=(500,),
    variants=grid(method=("der++", "er-ace"), addition=("", "lider")),
    compute=compute,
    show=show,
    measure=measure,
)
