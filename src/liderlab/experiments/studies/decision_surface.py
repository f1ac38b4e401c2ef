"""Decision surfaces around samples of the first task, as one task follows the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...functional.statistics import summarise
from .accuracy import by_case, describe
from .cases import Addition, Case, Request, chosen_settings, over_seeds
from .study import Column, Findings, Finished, Row, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar10",)
BUFFER = 500
ADDITIONS: tuple[Addition, ...] = ("", "lider")
GROUPS = {"memory": "rehearsed", "others": "not rehearsed"}
SAMPLES = {"smoke": 12, "cpu": 32, "paper": 100}
POINTS = {"smoke": 11, "cpu": 21, "paper": 41}
EXTENT = 0.1  # of a pixel's range from black to white
COLUMNS = [
    Column("run on", ("benchmark",)),
    Column("buffer", ("buffer",), digits=0),
    Column("method", ("label",)),
    Column("samples", ("group",)),
    Column("after task", ("task",), digits=0),
    Column("area kept (%)", ("area", "area_std")),
    Column("seeds", ("seeds",), digits=0),
]


def cases(request: Request) -> list[Case]:
    found = [
        Case(setting, BUFFER, "er-ace", addition, keep_tasks=True)
        for setting in chosen_settings(SETTINGS, request)
        for addition in ADDITIONS
    ]
    return over_seeds(found, request)


def measure(path: Path, scale: str) -> dict[str, Any]:
    """Surfaces after every task that the run has kept, or else after the last one."""
    import torch

    from ...analysis import follow_decision_surface, found_in
    from ...errors import UserError
    from ..load import load
    from .trained import open_trained, seeded

    run = open_trained(path)
    first, last = run.stream.tasks[0], len(run.stream.tasks)
    x, y = run.raw(first.train)
    inside = found_in(run.memory["x"][run.memory["task"] == 0], x)
    groups = {}
    for name, mask in (("memory", inside), ("others", ~inside)):
        index = mask.nonzero()[:, 0]
        index = index[torch.randperm(len(index), generator=seeded())[: SAMPLES[scale]]]
        if len(index):
            groups[name] = (run.inputs(x[index]), y[index])
    if run.folder.config().keep_tasks:
        tasks = list(range(last))
        models = (load(path, after_task=task).classifier for task in tasks)
    else:
        tasks, models = [last - 1], iter([run.model])
    if not groups:
        raise UserError(f"{path} has seen no samples of its first task")
    history = follow_decision_surface(
        models,
        groups,
        extent=EXTENT,
        points=POINTS[scale],
        normalisation=run.stream.transform,
    )
    areas = {name: history.area(name).tolist() for name in groups}
    counts = {name: len(y) for name, (_, y) in groups.items()}
    return {"tasks": tasks, "areas": areas, "samples": counts, **history.to_dict()}


def compute(finished: Sequence[Finished], request: Request) -> Findings:
    rows: list[Row] = []
    for case, runs in by_case(finished).items():
        for group, name in GROUPS.items():
            known = [run.measured for run in runs if group in run.measured["areas"]]
            for place, task in enumerate(known[0]["tasks"] if known else []):
                found = summarise([measured["areas"][group][place] for measured in known])
                assert found is not None
                row = {**describe(case, runs), "group": name, "task": task + 1}
                rows.append(row | {"area": found.mean, "area_std": found.std})
    notes = [
        "Area kept: share of the perturbations x + iα + jβ, |i|, |j| ≤ 0.1 of a pixel's range, "
        "with S > 0; α random, β the first step of FGSM; mean over samples of the first task. "
        "Rehearsed: in memory to the end. The paper shows the surfaces without numbers.",
    ]
    surfaces = [
        {"label": case.label, "tasks": runs[0].measured["tasks"], **_pictures(runs[0].measured)}
        for case, runs in by_case(finished).items()
    ]
    return Findings(rows, COLUMNS, notes, {"surfaces": surfaces})


def _pictures(measured: dict[str, Any]) -> dict[str, Any]:
    """The mean heights, which the figure draws; rounded: nobody sees the fifth digit."""
    groups = {
        name: [[[round(v, 4) for v in row] for row in surface["height"]] for surface in surfaces]
        for name, surfaces in measured["surfaces"].items()
    }
    return {"extent": EXTENT, "groups": groups}


def show(findings: Findings) -> Figure:
    """One row of surfaces for every method and group, one column for every task."""
    import numpy as np

    from .charts import new_figure

    strips = [
        (f"{picture['label']}\n{GROUPS[group]}", picture["tasks"], np.array(heights))
        for picture in findings.data["surfaces"]
        for group, heights in picture["groups"].items()
    ]
    across = max(len(tasks) for _, tasks, _ in strips)
    figure = new_figure(1.75 * across + 1.6, 1.75 * len(strips) + 0.7)
    axes = figure.subplots(len(strips), across, squeeze=False, sharex=True, sharey=True)
    most = float(np.percentile(np.abs(np.concatenate([h.ravel() for _, _, h in strips])), 98)) or 1
    steps = np.linspace(-EXTENT, EXTENT, strips[0][2].shape[1])
    for line, (label, tasks, heights) in zip(axes, strips, strict=True):
        for axis, task, height in zip(line, tasks, heights, strict=False):
            image = axis.pcolormesh(
                steps, steps, height, cmap="PRGn", vmin=-most, vmax=most, shading="gouraud"
            )
            axis.set_aspect("equal")
            if height.min() < 0 < height.max():
                axis.contour(steps, steps, height, [0], colors="black", linestyles="--")
            if line is axes[0]:
                axis.set_title(f"after task {task + 1}", fontsize=9)
        line[0].set_ylabel(f"{label}\nFGSM step j", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("random step i", fontsize=8)
    bar = figure.colorbar(image, ax=axes, shrink=0.7, extend="both")
    bar.set_label("mean S: right logit − highest other; dashed: S = 0")
    return figure


STUDY = Study(
    title="Decision surfaces around rehearsed and other samples",
    paper="figures fig:palle and fig:losslao: decision surfaces, Split CIFAR-10",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
    measure=measure,
)
