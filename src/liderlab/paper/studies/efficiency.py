"""Memory, speed and accuracy with and without LiDER, for growing networks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cases import Request
from .study_definition import Findings, FinishedCase, Row, Study, TableColumn, Variant, grid
from .study_rows import CASE_COLUMNS, SEEDS, by_case, describe, spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = {"smoke": 6, "cpu": 10, "paper": 20}
COLUMNS = [
    CASE_COLUMNS[0],
    TableColumn("network", ("network",)),
    CASE_COLUMNS[2],
    TableColumn("peak memory (MB)", ("megabytes", "megabytes_std"), digits=0),
    TableColumn("images/s", ("speed", "speed_std"), digits=1),
    TableColumn("FAA ↑", ("faa", "faa_std")),
    SEEDS,
]


def measure(path: Path, scale: str) -> dict[str, Any]:
    """Peak memory of a process that trains as the run did, and images of the stream per second."""
    from ...analysis.training_cost import measure_in_child

    measured = measure_in_child(train_a_little, str(path), STEPS[scale])
    return {"peak_bytes": measured.peak_bytes, "images_per_second": measured.value}


def train_a_little(path: str, steps: int) -> float:
    """Images per second, by the median step, from the second task on, when there is rehearsal."""
    from statistics import median
    from time import perf_counter

    import torch

    from ...config.merging import make_config, merge
    from ...runs.build import build
    from ...runs.folder import RunFolder
    from ...training.events import StepDone

    tree = RunFolder.open(path).config().model_dump()
    batch, tasks = tree["training"]["batch_size"], tree["benchmark"]["tasks"]
    few = {"training": {"epochs": 1, "milestones": []}, "benchmark": {"train_per_class": batch}}
    config = make_config(merge(tree, few))
    torch.set_num_threads(config.threads or 1)
    seconds: list[float] = []
    began = perf_counter()
    for event in build(config).loop:
        if isinstance(event, StepDone) and (event.task.index > 0 or tasks == 1):
            float(sum(value.sum() for value in event.terms.values()))  # waits for the device
            seconds.append(perf_counter() - began)
        if len(seconds) > steps:
            break
        began = perf_counter()
    return batch / median(seconds[1:] or seconds)


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows: list[Row] = []
    for case, runs in by_case(finished).items():
        width = "" if case.width is None else f", width {case.width}"
        network = {"network": f"{case.backbone}{width}"}
        rows.append(describe(case, runs) | network | spreads(runs, _numbers))
    notes = [
        "Peak memory: the most that a separate training process held, libraries and data "
        "included. Images of the stream per second, in training with rehearsal, by the median "
        "step: other work on the machine makes them fewer. The paper shows curves without numbers.",
    ]
    return Findings(rows, COLUMNS, notes)


def _numbers(run: FinishedCase) -> dict[str, float | None]:
    return {
        "megabytes": run.measured["peak_bytes"] / 1e6,
        "speed": run.measured["images_per_second"],
        "faa": run.metric("faa"),
    }


def show(findings: Findings) -> Figure:
    from ...analysis import plots

    points: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in findings.rows:
        name = row["network"].removeprefix("efficientnet-").removeprefix("convnet-small, ")
        point = (row["faa"], 1e6 * row["megabytes"], row["speed"])
        points.setdefault(row["label"], {})[name] = point
    return plots.draw_efficiency(points)


def _variants(networks: Iterable[Variant]) -> list[Variant]:
    return [n | v for n in networks for v in grid(method=("er-ace",), addition=("", "lider"))]


STUDY = Study(
    title="Efficiency and accuracy of growing networks",
    paper="supplementary figure fig:largescale: memory/accuracy and speed/accuracy trade-offs",
    settings=("cub200",),
    buffers=(400,),
    variants=_variants({"backbone": f"efficientnet-b{size}"} for size in range(8)),
    # EfficientNets need large images; those of smoke scale are small.
    smoke_variants=_variants({"backbone": "convnet-small", "width": width} for width in (8, 16)),
    compute=compute,
    show=show,
    measure=measure,
)
