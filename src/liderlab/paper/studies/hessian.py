"""Flatness, second way: eigenvalues of the loss's Hessian."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cases import Request
from .study_definition import Findings, FinishedCase, Study, TableColumn, grid
from .study_rows import CASE_COLUMNS, SEEDS, by_case, describe, spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLES = {"smoke": 64, "cpu": 500, "paper": 5000}
EIGENVALUES = {"smoke": 2, "cpu": 5, "paper": 10}
SIGNS = {"smoke": 8, "cpu": 32, "paper": 100}  # of Hutchinson's estimate
COLUMNS = [
    *CASE_COLUMNS,
    TableColumn("trace", ("trace", "trace_std")),
    TableColumn("its standard error", ("trace_error",)),
    TableColumn("largest eigenvalue", ("largest", "largest_std")),
    SEEDS,
]


def measure(path: Path, scale: str) -> dict[str, Any]:
    """Top eigenvalues and trace, on training images of all tasks."""
    from ...analysis.loss_curvature import hessian_spectrum
    from .finished_run import open_finished_run, seeded

    run = open_finished_run(path)
    x, y = run.some_training(SAMPLES[scale])
    spectrum = hessian_spectrum(
        run.model, x, y, k=EIGENVALUES[scale], trace_samples=SIGNS[scale], generator=seeded()
    )
    return spectrum.to_dict()


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    groups = by_case(finished)
    rows = [describe(case, runs) | spreads(runs, _numbers) for case, runs in groups.items()]
    note = (
        "Hessian of the mean cross-entropy in the weights, on training images of all tasks; its "
        "trace is the sum of the eigenvalues, the paper's measure, which it shows as bars without "
        "numbers."
    )
    spectra = {case.label: [run.measured for run in runs] for case, runs in groups.items()}
    return Findings(rows, COLUMNS, [note], {"spectra": spectra})


def _numbers(run: FinishedCase) -> dict[str, float | None]:
    found = run.measured
    return {
        "trace": found["trace"],
        "trace_error": found["trace_error"],
        "largest": found["eigenvalues"][0],
    }


def show(findings: Findings) -> Figure:
    from ...analysis import plots
    from ...analysis.loss_curvature import HessianSpectrum

    spectra = findings.data["spectra"]
    return plots.draw_hessian(
        {label: [HessianSpectrum.from_dict(t) for t in trees] for label, trees in spectra.items()}
    )


STUDY = Study(
    title="Curvature of the loss",
    paper="figure fig:pert_hess, right: sum of the eigenvalues of the Hessian",
    settings=("cifar100",),
    buffers=(500,),
    variants=grid(method=("der++", "er-ace"), addition=("", "lider")),
    compute=compute,
    show=show,
    measure=measure,
)
