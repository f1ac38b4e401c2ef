"""The network's Lipschitz constants, and its accuracy under attack, as the memory shrinks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...functional.statistics import summarise
from .accuracy_table import by_case, describe
from .cases import Addition, Case, Request, combinations
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100",)
BUFFERS = (200, 500, 2000, 5000)
FEW_BUFFERS = (200, 500)
ADDITIONS: tuple[Addition, ...] = ("", "lider")
EPSILONS = (0, 1 / 255, 2 / 255, 4 / 255, 8 / 255, 16 / 255)
STRONG = 4 / 255  # the attack that table and figure show
SAMPLES = {"smoke": 100, "cpu": 500, "paper": 2000}
STEPS = {"smoke": 4, "cpu": 10, "paper": 20}  # of PGD
KEYS = ("lambda", "log10_bound", "accuracy", "fgsm", "pgd")
COLUMNS = [
    TableColumn("run on", ("benchmark",)),
    TableColumn("buffer", ("buffer",), digits=0),
    TableColumn("method", ("label",)),
    TableColumn("mean λ", ("lambda", "lambda_std"), digits=3),
    TableColumn("log₁₀ ∏‖W‖", ("log10_bound", "log10_bound_std")),
    TableColumn("accuracy", ("accuracy", "accuracy_std")),
    TableColumn("FGSM 4/255", ("fgsm", "fgsm_std")),
    TableColumn("PGD 4/255", ("pgd", "pgd_std")),
    TableColumn("seeds", ("seeds",), digits=0),
]


def cases(request: Request) -> list[Case]:
    sizes = FEW_BUFFERS if request.smoke else BUFFERS
    return combinations(SETTINGS, ("er-ace",), ADDITIONS, request, sizes)


def measure(path: Path, scale: str) -> dict[str, Any]:
    """λ on what is in memory, ∏‖W_k‖, and test accuracy under FGSM and PGD."""
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
    for case, runs in by_case(finished).items():
        row = describe(case, runs)
        values = [_numbers(run.measured) for run in runs]
        for key in KEYS:
            if found := summarise([value[key] for value in values]):
                row |= {key: found.mean, f"{key}_std": found.std}
        rows.append(row)
    notes = [
        "λ: mean over the network's stages, on the samples in memory, as LiDER takes it (Eq. 6). "
        "∏‖W‖: product of the layers' spectral norms, BatchNorm folded in (Eqs. 4, 5). Accuracy "
        "class-incremental, on test images; attacks of 4/255 in every pixel.",
        "The paper shows a curve without numbers: the constant grows as the memory shrinks.",
    ]
    attacks = [
        {"label": run.case.label, "buffer": row["buffer"], **run.measured["robustness"]}
        for row, runs in zip(rows, by_case(finished).values(), strict=True)
        for run in runs[:1]
    ]
    return Findings(rows, COLUMNS, notes, {"attacks": attacks})


def _numbers(measured: dict[str, Any]) -> Row:
    attacked = measured["robustness"]["accuracy"]
    strong = EPSILONS.index(STRONG)
    return {
        "lambda": measured["constants"]["mean"],
        "log10_bound": measured["bound"]["log10"],
        "accuracy": attacked["fgsm"][0],
        "fgsm": attacked["fgsm"][strong],
        "pgd": attacked["pgd"][strong],
    }


def show(findings: Findings) -> Figure:
    from .charts import Line, Panel, curves

    labels = dict.fromkeys(row["label"] for row in findings.rows)
    panels = []
    for key, name in (
        ("lambda", "mean λ of the stages"),
        ("log10_bound", "log₁₀ ∏‖W‖"),
        ("fgsm", "accuracy under FGSM 4/255 (%)"),
        ("pgd", "accuracy under PGD 4/255 (%)"),
    ):
        lines = []
        for label in labels:
            rows = [row for row in findings.rows if row["label"] == label]
            spread = [row[f"{key}_std"] for row in rows]
            lines.append(
                Line(label, [row["buffer"] for row in rows], [row[key] for row in rows], spread)
            )
        many = len({row["buffer"] for row in findings.rows}) > 1
        panels.append(Panel("", "buffer size", name, lines, log_x=many))
    return curves(panels)


STUDY = Study(
    title="Lipschitz constants and robustness as the memory shrinks",
    paper="the inset figure of the introduction",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
    measure=measure,
)
