"""The network's Lipschitz constants, and its accuracy under attack, as the memory shrinks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cases import Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn, grid
from .study_rows import CASE_COLUMNS, SEEDS, by_case, describe, spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0, 1 / 255, 2 / 255, 4 / 255, 8 / 255, 16 / 255)
SHOWN = EPSILONS.index(4 / 255)  # the attack in table and figure
SAMPLES = {"smoke": 100, "cpu": 500, "paper": 2000}
STEPS = {"smoke": 4, "cpu": 10, "paper": 20}  # of PGD
COLUMNS = [
    *CASE_COLUMNS,
    TableColumn("mean λ", ("lambda", "lambda_std"), digits=3),
    TableColumn("log₁₀ ∏‖W‖", ("log10_bound", "log10_bound_std")),
    TableColumn("accuracy", ("accuracy", "accuracy_std")),
    TableColumn("FGSM 4/255", ("fgsm", "fgsm_std")),
    TableColumn("PGD 4/255", ("pgd", "pgd_std")),
    SEEDS,
]
PANELS = {
    "lambda": "mean λ of the stages",
    "log10_bound": "log₁₀ ∏‖W‖",
    "fgsm": "accuracy under FGSM 4/255 (%)",
    "pgd": "accuracy under PGD 4/255 (%)",
}


def measure(path: Path, scale: str) -> dict[str, Any]:
    """λ on the samples in memory, ∏‖W_k‖, and test accuracy under FGSM and PGD."""
    from ...analysis.attacks import robustness
    from ...analysis.lipschitz_bounds import lipschitz_bound, lipschitz_constants
    from .finished_run import open_finished_run, seeded

    run = open_finished_run(path)
    x, y = run.some_test(SAMPLES[scale])
    replayed = run.inputs(run.memory["x"][: SAMPLES[scale]])
    attacked = robustness(
        run.model,
        x,
        y,
        epsilons=EPSILONS,
        normalisation=run.stream.transform,
        steps=STEPS[scale],
        generator=seeded(),
    )
    constants = lipschitz_constants(run.model, replayed if len(replayed) else x)
    bound = lipschitz_bound(run.model, x[:1], generator=seeded())
    return {
        "constants": constants.to_dict(),
        "bound": bound.to_dict(),
        "robustness": attacked.to_dict(),
    }


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows: list[Row] = []
    attacks = []
    for case, runs in by_case(finished).items():
        row = describe(case, runs) | spreads(runs, _numbers)
        rows.append(row)
        first = runs[0].measured["robustness"]
        attacks.append({"label": case.label, "buffer": row["buffer"], **first})
    notes = [
        "λ: mean over the network's stages, on the samples in memory, as LiDER takes it (Eq. 6). "
        "∏‖W‖: product of the layers' spectral norms, BatchNorm folded in (Eqs. 4, 5). Accuracy "
        "class-incremental, on test images; attacks of 4/255 in every pixel.",
        "The paper shows a curve without numbers: the constant grows as the memory shrinks.",
    ]
    return Findings(rows, COLUMNS, notes, {"attacks": attacks})


def _numbers(run: FinishedCase) -> dict[str, float | None]:
    attacked = run.measured["robustness"]["accuracy"]
    return {
        "lambda": run.measured["constants"]["mean"],
        "log10_bound": run.measured["bound"]["log10"],
        "accuracy": attacked["fgsm"][0],
        "fgsm": attacked["fgsm"][SHOWN],
        "pgd": attacked["pgd"][SHOWN],
    }


def show(findings: Findings) -> Figure:
    from .charts import Line, Panel, curves

    by_label: dict[str, list[Row]] = {}
    for row in findings.rows:
        by_label.setdefault(row["label"], []).append(row)
    several = len({row["buffer"] for row in findings.rows}) > 1
    panels = []
    for key, name in PANELS.items():
        lines = []
        for label, rows in by_label.items():
            x, y, spread = ([row[k] for row in rows] for k in ("buffer", key, f"{key}_std"))
            lines.append(Line(label, x, y, spread))
        panels.append(Panel("", "buffer size", name, lines, log_x=several))
    return curves(panels)


STUDY = Study(
    title="Lipschitz constants and robustness as the memory shrinks",
    paper="the inset figure of the introduction",
    settings=("cifar100",),
    buffers=(200, 500, 2000, 5000),
    smoke_buffers=2,
    variants=grid(method=("er-ace",), addition=("", "lider")),
    compute=compute,
    show=show,
    measure=measure,
)
