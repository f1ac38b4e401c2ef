"""Decision surfaces around samples of the first task, after each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cases import Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn, grid
from .study_rows import CASE_COLUMNS, SEEDS, by_case, describe, spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import nn

GROUPS = {"memory": "rehearsed", "others": "not rehearsed"}
SAMPLES = {"smoke": 8, "cpu": 32, "paper": 100}
POINTS = {"smoke": 7, "cpu": 21, "paper": 41}
EXTENT = 0.1  # of a pixel's range from black to white
COLUMNS = [
    *CASE_COLUMNS,
    TableColumn("samples", ("group",)),
    TableColumn("after task", ("task",), digits=0),
    TableColumn("area kept (%)", ("area", "area_std")),
    SEEDS,
]


def measure(path: Path, scale: str) -> dict[str, Any]:
    """Surfaces after every task, if the run kept its networks, or else after the last one."""
    import torch

    from ...analysis.surface import follow_decision_surface
    from ...errors import UserError
    from ...runs.load import load
    from .finished_run import open_finished_run, seeded

    run = open_finished_run(path)
    last = len(run.stream.tasks)
    x, y, inside = run.first_task()
    groups = {}
    for name, mask in (("memory", inside), ("others", ~inside)):
        index = mask.nonzero()[:, 0]
        index = index[torch.randperm(len(index), generator=seeded())[: SAMPLES[scale]]]
        if len(index):
            groups[name] = (run.inputs(x[index]), y[index])
    if not groups:
        raise UserError(f"{path} has seen no samples of its first task")
    if run.folder.config().keep_tasks:
        tasks = list(range(last))
        models: Iterator[nn.Module] = (load(path, after_task=task).classifier for task in tasks)
    else:
        tasks, models = [last - 1], iter([run.model])
    history = follow_decision_surface(
        models, groups, extent=EXTENT, points=POINTS[scale], normalisation=run.stream.transform
    )
    areas = {name: history.area(name).tolist() for name in groups}
    counts = {name: len(y) for name, (_, y) in groups.items()}
    return {"tasks": tasks, "areas": areas, "samples": counts, **history.to_dict()}


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows: list[Row] = []
    for case, runs in by_case(finished).items():
        for group, name in GROUPS.items():
            known = [run for run in runs if group in run.measured["areas"]]
            for place, task in enumerate(known[0].measured["tasks"] if known else []):
                row = describe(case, runs) | {"group": name, "task": task + 1}
                rows.append(row | spreads(known, _area(group, place)))
    notes = [
        "Area kept: share of the perturbations x + iα + jβ, |i|, |j| ≤ 0.1 of a pixel's range, "
        "with S > 0; α random, β the first step of FGSM; mean over samples of the first task. "
        "Rehearsed: in memory to the end. The paper shows the surfaces without numbers.",
    ]
    surfaces = {
        case.label: runs[0].measured["surfaces"] for case, runs in by_case(finished).items()
    }
    return Findings(rows, COLUMNS, notes, {"surfaces": surfaces})


def _area(group: str, place: int) -> Any:
    """A reader of the area that a group of samples keeps after the place-th task."""
    return lambda run: {"area": run.measured["areas"][group][place]}


def show(findings: Findings) -> Figure:
    from ...analysis import plots
    from ...analysis.surface import DecisionSurface, SurfaceHistory

    histories = {
        label: SurfaceHistory(
            {
                GROUPS[group]: [DecisionSurface.from_dict(tree) for tree in trees]
                for group, trees in groups.items()
            }
        )
        for label, groups in findings.data["surfaces"].items()
    }
    return plots.draw_surface_history(histories)


STUDY = Study(
    title="Decision surfaces around rehearsed and other samples",
    paper="figures fig:palle and fig:losslao: decision surfaces, Split CIFAR-10",
    settings=("cifar10",),
    buffers=(500,),
    variants=grid(method=("er-ace",), addition=("", "lider"), keep_tasks=(True,)),
    compute=compute,
    show=show,
    measure=measure,
    needs_memory=True,
)
