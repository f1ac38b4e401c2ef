"""The idea in one picture: decision regions in the plane, with and without LiDER."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...functional.statistics import paired_difference, summarise
from .cases import Case, Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn

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
    TableColumn("seeds", ("seeds",), digits=0),
]


def no_runs(request: Request) -> list[Case]:
    """It trains its own small networks, in seconds."""
    return []


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    from ...analysis.toy_problem import toy_boundaries

    pictures = {}
    rows: list[Row] = []
    means: dict[str, list[float]] = {}
    for label, lider in LABELS.items():
        results = [
            toy_boundaries(
                lider=lider, steps=STEPS[request.scale], grid=GRID[request.scale], seed=seed
            )
            for seed in range(request.seeds)
        ]
        pictures[label] = results[0].to_dict()
        means[label] = [result.final_accuracy for result in results]
        first = summarise([float(result.accuracy[-1][0]) for result in results])
        final = summarise(means[label])
        assert first is not None
        assert final is not None
        row: Row = {"label": label, "seeds": request.seeds}
        row |= {
            "first": first.mean,
            "first_std": first.std,
            "faa": final.mean,
            "faa_std": final.std,
        }
        rows.append(row)
    plain, treated = means.values()
    difference = paired_difference(dict(enumerate(treated)), dict(enumerate(plain)))
    assert difference is not None
    rows[-1] |= {"gain": difference.mean, "gain_low": difference.low, "gain_high": difference.high}
    notes = [
        "Three tasks of two crescents each, a memory of few points, a small network. The paper's "
        "figure is a drawing; this is a computation. It shows the first seed.",
        "One seed: there is no spread, and no interval, to give."
        if request.seeds == 1
        else f"{request.seeds} seeds: mean ± sample standard deviation, paired 95 % interval.",
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
    settings=(),
    cases=no_runs,
    compute=compute,
    show=show,
)
