"""Flatness, second way: eigenvalues of the loss's Hessian."""

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

SAMPLES = {"smoke": 64, "cpu": 500, "paper": 5000}
EIGENVALUES = {"smoke": 2, "cpu": 5, "paper": 10}
SIGNS = {"smoke": 8, "cpu": 32, "paper": 100}  # of Hutchinson's estimate_cost
COLUMNS = [
    TableColumn("run on", ("benchmark",)),
    TableColumn("buffer", ("buffer",), digits=0),
    TableColumn("method", ("label",)),
    TableColumn("trace", ("trace", "trace_std")),
    TableColumn("its standard error", ("trace_error",)),
    TableColumn("largest eigenvalue", ("largest", "largest_std")),
    TableColumn("seeds", ("seeds",), digits=0),
]


def cases(request: Request) -> list[Case]:
    return over_seeds(flatness_cases(chosen_settings(SETTINGS, request)), request)


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
    rows: list[Row] = []
    spectra: dict[str, Any] = {}
    for case, runs in by_case(finished).items():
        row: Row = describe(case, runs)
        traces = summarise([run.measured["trace"] for run in runs])
        largest = summarise([run.measured["eigenvalues"][0] for run in runs])
        assert traces is not None
        assert largest is not None
        errors = [run.measured["trace_error"] for run in runs]
        row |= {"trace": traces.mean, "trace_std": traces.std}
        row |= {"largest": largest.mean, "largest_std": largest.std}
        rows.append(row | {"trace_error": sum(errors) / len(errors)})
        spectra[case.label] = [run.measured for run in runs]
    note = (
        "Hessian of the mean cross-entropy in the weights, on training images of all tasks; its "
        "trace is the sum of the eigenvalues, the paper's measure, which it shows as bars without "
        "numbers."
    )
    return Findings(rows, COLUMNS, [note], {"spectra": spectra})


def show(findings: Findings) -> Figure:
    from ...analysis import plots
    from ...analysis.loss_curvature import HessianSpectrum

    return plots.draw_hessian(
        {
            label: [HessianSpectrum.from_dict(tree) for tree in trees]
            for label, trees in findings.data["spectra"].items()
        }
    )


STUDY = Study(
    title="Curvature of the loss",
    paper="figure fig:pert_hess, right: sum of the eigenvalues of the Hessian",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
    measure=measure,
)
