"""Which LiDER helps: its forms, its two terms alone, kinds of targets, roles of the weights, and a
control, all added to ER-ACE alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...config.lider_forms import TUNED_BETA
from .cases import Case, Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn, Variant, grid
from .study_rows import CASE_COLUMNS, SEEDS, by_case, describe, gain_over, spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRENGTH = {"alpha": TUNED_BETA / 3, "beta": TUNED_BETA}
"""α and β of every kind but tuned: in the ratio that the paper prints for ER-ACE."""
HUES = ("paper", "released", "tuned", "0-term alone", "c-term alone", "control")
ROLES = {"paper": "α on c", "swapped": "α on 0"}
COLUMNS = [
    *CASE_COLUMNS[:2],
    TableColumn("LiDER", ("kind",)),
    TableColumn("α", ("alpha",)),
    TableColumn("β", ("beta",)),
    TableColumn("FAA ↑", ("faa", "faa_std")),
    TableColumn("AIA ↑", ("aia", "aia_std")),
    TableColumn("FF ↓", ("ff", "ff_std")),
    TableColumn("memory − test", ("gap", "gap_std")),
    TableColumn("ΔFAA [95 %]", ("gain", "gain_low", "gain_high"), sign=True),
    SEEDS,
]
NOTES = [
    "none: ER-ACE alone; all others have its values and LiDER added. learned, fixed: the targets. "
    "α on c: α weighs the c-term and β the 0-term (Eq. 9); α on 0: the other way round.",
    "control: the form released (extra passes, which move BatchNorm's statistics; no short last "
    "batch) without its terms. memory − test: accuracy on the memory minus FAA, after all tasks.",
]


def kind_of(case: Case) -> str:
    """The name of the form or term.

    >>> kind_of(Case("cifar100", 500, "er-ace", "lider", form="paper", alpha=0.0, beta=1.0))
    '0-term alone'
    """
    if case.addition == "" or case.control or case.form == "tuned":
        return "none" if case.addition == "" else "control" if case.control else "tuned"
    if 0.0 not in (case.alpha, case.beta):
        return str(case.form)
    swapped = case.roles == "swapped"
    return "0-term alone" if (case.alpha == 0.0) != swapped else "c-term alone"


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    groups = by_case(finished)
    plain = next((runs for case, runs in groups.items() if case.addition == ""), [])
    rows: list[Row] = []
    for case, runs in groups.items():
        kind = kind_of(case)
        own = ", ".join(word for word in (case.targets, ROLES.get(str(case.roles))) if word)
        weights = runs[0].result["config"]["regularizers"].get("lider", {})
        row = describe(case, runs) | {"kind": f"{kind}: {own}" if own else kind}
        row |= {"alpha": weights.get("alpha"), "beta": weights.get("beta")}
        row |= spreads(runs, _numbers)
        if kind != "none":
            row["hue"] = HUES.index(kind)
            row |= gain_over(plain, runs, lambda run: run.metric("faa"))
        rows.append(row)
    return Findings(rows, COLUMNS, NOTES)


def _numbers(run: FinishedCase) -> dict[str, float | None]:
    last = (run.result["class_incremental"].get("memory_accuracy") or [[]])[-1]
    known = [value for value in last if value is not None]
    faa = run.metric("faa")
    gap = sum(known) / len(known) - faa if known and faa is not None else None
    return {"faa": faa, "aia": run.metric("aia"), "ff": run.metric("ff"), "gap": gap}


def show(findings: Findings) -> Figure:
    from .charts import gain_chart

    return gain_chart([row for row in findings.rows if "gain" in row], "ΔFAA (points)")


def lider(**fields: Any) -> Variant:
    start = {"method": "er-ace", "addition": "lider", "column": "controlled"}
    return {**start, "form": "paper", **STRENGTH, **fields}


BOTH = {"targets": ("learned", "fixed"), "roles": ("paper", "swapped")}
ALONE: Variant = {"method": "er-ace"}
TUNED = {**lider(form="tuned"), "alpha": None, "beta": None}
CONTROL = lider(form="released", control=True)
STUDY = Study(
    title="Which LiDER helps",
    paper="beyond the paper: its LiDER, that of the authors' code, and parts of both",
    settings=("cifar100",),
    buffers=(500,),
    variants=[
        ALONE,
        *(lider(**one) for one in grid(form=("paper", "released"), **BOTH)),
        TUNED,
        lider(alpha=0.0, roles="paper"),
        lider(beta=0.0, roles="swapped"),
        *(lider(beta=0.0, roles="paper", targets=kind) for kind in BOTH["targets"]),
        *(lider(alpha=0.0, roles="swapped", targets=kind) for kind in BOTH["targets"]),
        CONTROL,
    ],
    smoke_variants=[
        ALONE,
        lider(targets="learned", roles="paper"),
        lider(form="released", targets="fixed", roles="swapped"),
        TUNED,
        lider(beta=0.0, roles="paper", targets="learned"),
        CONTROL,
    ],
    compute=compute,
    show=show,
)
