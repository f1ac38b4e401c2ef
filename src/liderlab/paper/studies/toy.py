"""The idea in one picture: decision regions in the plane, with and without LiDER.

It trains its own small networks, in seconds, and needs no runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...functional.statistics import paired_difference, summarise
from .cases import Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn
from .study_rows import SEEDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {"rehearsal": False, "rehearsal + LiDER": True}
STEPS = {"smoke": 100, "cpu": 400, "paper": 400}
GRID = {"smoke": 61, "cpu": 121, "paper": 241}
COLUMNS = [
    TableColumn("method", ("label",)),
    TableColumn("accuracy on the first task (%)", ("first", "first_std")),
    TableColumn("FAA (%)", ("faa", "faa_std")),
    TableColumn("ΔFAA [95 %]", ("gain", "gain_low", "gain_high"), sign=True),
    SEEDS,
]


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    from ...analysis.toy_problem import toy_boundaries

    pictures = {}
    rows: list[Row] = []
    means: list[dict[int, float]] = []
    steps, grid = STEPS[request.scale], GRID[request.scale]
    for label, lider in LABELS.items():
        results = [
            toy_boundaries(lider=lider, steps=steps, grid=grid, seed=seed)
            for seed in range(request.seeds)
        ]
        pictures[label] = results[0].to_dict()
        means.append({seed: result.final_accuracy for seed, result in enumerate(results)})
        row: Row = {"label": label, "seeds": request.seeds}
        first = [float(result.accuracy[-1][0]) for result in results]
        for name, values in (("first", first), ("faa", list(means[-1].values()))):
            if found := summarise(values):
                row |= {name: found.mean, f"{name}_std": found.std}
        rows.append(row)
    plain, treated = means
    if gain := paired_difference(treated, plain):
        rows[-1] |= {"gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high}
    notes = [
        "Three tasks of two crescents each, a memory of few points, a small network. The paper's "
        "figure is a drawing; this is a computation. It shows the first seed.",
    ]
    return Findings(rows, COLUMNS, notes, {"boundaries": pictures})


def show(findings: Findings) -> Figure:
    from ...analysis import plots
    from ...analysis.toy_problem import ToyBoundaries

    boundaries = findings.data["boundaries"]
    return plots.draw_toy(
        {label: ToyBoundaries.from_dict(tree) for label, tree in boundaries.items()}
    )


STUDY = Study(
    title="LiDER in the plane",
    paper="supplementary figure fig:overview: illustration of the effect of LiDER",
    compute=compute,
    show=show,
)
