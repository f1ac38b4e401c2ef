"""The measures of `lider bench`: what is timed, and the limits of the ratios."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

import torch

from ..analysis.interleaved_timing import Action, Clock, Ratio, time_in_turns
from ..errors import unknown
from ..regularizers import REGULARIZERS
from ..runs.provenance import versions
from . import transformer_workload, workloads


@dataclass(frozen=True)
class RatioLimit:
    """The time of `above` over that of `below` is at most, or at least, a limit.

    Without a limit the ratio is only reported.
    """

    above: str
    below: str
    most: float | None = None
    least: float | None = None

    def met(self, ratio: float) -> bool | None:
        if self.most is not None:
            return ratio <= self.most
        return None if self.least is None else ratio >= self.least


@dataclass(frozen=True)
class Measure:
    """Actions that are timed together, made by `make(quick)`, and the limits of their ratios.

    Steps: `without` regularisers, with one of them by its name, with LiDER's `spatial`, `batch` or
    `jacobian` form, with its draw `fresh`, and the `bare` forward and backward passes and SGD.
    Curvature: the Fisher diagonal `row by row` and as `oewc` computes it, `olap`'s factors, one
    `forward+backward` pass.
    """

    summary: str
    make: Callable[[bool], dict[str, Action]]
    limits: Sequence[RatioLimit]
    rounds: int = 11


def _steps(backbone: str, width: int, side: int, names: str, quick: bool) -> dict[str, Action]:
    """Training steps by name. quick: with a tiny network and images, only to try the steps."""
    batch = 4 if quick else 64
    if quick:
        width, side = 8, 16 if side == 32 else 32
    actions = {}
    for name in names.split():
        lider = workloads.LIDER_OPTIONS.get(name)
        added = {} if lider is None else {"lider": lider}
        if name in REGULARIZERS:
            added = {name: FOR_FEW_ROWS.get(name, {}) if quick else {}}
        work = workloads.prepared_run(backbone, width, side, batch=batch, regularizers=added)
        bare = name == "bare"
        actions[name] = workloads.bare_step(work, batch) if bare else workloads.loop_step(work)
    return actions


FOR_FEW_ROWS: dict[str, dict[str, Any]] = {"casper": {"neighbors": 2}}


def _lider_limits(most: float) -> list[RatioLimit]:
    return [RatioLimit(form, "without", most=most) for form in ("spatial", "batch")]


MEASURES = {
    "resnet18-64": Measure(
        "er-ace step, ResNet18 of width 64, 32x32, batch 64 + 64",
        partial(_steps, "resnet18", 64, 32, "without spatial batch bare"),
        [*_lider_limits(1.05), RatioLimit("without", "bare", most=1.03)],
        rounds=31,
    ),
    "resnet18-16": Measure(
        "er-ace step, ResNet18 of width 16, 32x32, batch 64 + 64",
        partial(_steps, "resnet18", 16, 32, "without spatial batch bare"),
        [*_lider_limits(1.12), RatioLimit("without", "bare", most=1.10)],
        rounds=101,
    ),
    "resnet18-8": Measure(
        "er-ace step, ResNet18 of width 8, 32x32, batch 64 + 64",
        partial(_steps, "resnet18", 8, 32, "without spatial bare"),
        [RatioLimit("spatial", "without"), RatioLimit("without", "bare", most=1.10)],
        rounds=101,
    ),
    "efficientnet-b2": Measure(
        "er-ace step, EfficientNet-B2, 84x84, batch 64 + 64",
        partial(_steps, "efficientnet-b2", 32, 84, "without spatial batch"),
        _lider_limits(1.10),
        rounds=31,
    ),
    "fresh": Measure(
        "as released, an extra draw and pass for each term; as resnet18-64",
        partial(_steps, "resnet18", 64, 32, "spatial fresh"),
        [RatioLimit("fresh", "spatial", least=1.8)],
        rounds=5,
    ),
    "regularizers": Measure(
        "er-ace step with each regulariser; as resnet18-16",
        partial(_steps, "resnet18", 16, 32, " ".join(["without", *REGULARIZERS])),
        [RatioLimit(name, "without") for name in REGULARIZERS],
    ),
    "jacobian": Measure(
        "local constants, beyond the paper; as resnet18-16",
        partial(_steps, "resnet18", 16, 32, "without jacobian"),
        [RatioLimit("jacobian", "without")],
        rounds=7,
    ),
    "tokens": Measure(
        "replay step, transformer of 4 blocks of 96 on 64 tokens, batch 64",
        lambda quick: transformer_workload.replay_steps(*((4, 8) if quick else ())),
        [RatioLimit(form, "without") for form in ("spatial", "batch", "jacobian")],
    ),
    "vit": Measure(
        "replay step, backbone vit (6 blocks of 96 on 65 tokens), batch 64",
        lambda quick: transformer_workload.preset_steps(*((4, 8) if quick else ())),
        [RatioLimit("spatial", "without")],
    ),
    "curvature": Measure(
        "curvature of 64 rows, small convnet, 8x8",
        lambda quick: workloads.curvature(4 if quick else 64),
        [RatioLimit("row by row", "oewc", least=10), RatioLimit("olap", "forward+backward")],
        rounds=21,
    ),
    "herding": Measure(
        "20 exemplars of 500 rows, 512 features",
        lambda quick: workloads.herding(),
        [RatioLimit("herding", "products")],
        rounds=21,
    ),
}


def measure(name: str, *, quick: bool = False, clock: Clock = "wall") -> dict[str, Any]:
    """Times of one measure's actions, and their ratios."""
    if name not in MEASURES:
        raise unknown("measure", name, MEASURES)
    chosen = MEASURES[name]
    rounds = 2 if quick else chosen.rounds
    times = time_in_turns(chosen.make(quick), rounds, clock)
    ratios = []
    for limit in chosen.limits:
        ratio = Ratio.of(times[limit.above], times[limit.below])
        met = None if quick else limit.met(ratio.value)
        ratios.append({**asdict(limit), **asdict(ratio), "met": met})
    return {
        "name": name,
        "summary": chosen.summary,
        "rounds": rounds,
        "milliseconds": {k: round(1000 * median(v), 3) for k, v in times.items()},
        "ratios": ratios,
    }


def machine(threads: int | None) -> dict[str, Any]:
    """Set the number of threads (None: torch's default), and describe the machine."""
    torch.set_num_threads(threads or torch.get_num_threads())
    return {"cores": os.cpu_count(), **versions()}


def load() -> float | None:
    """The load average of the last minute, which includes this process."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
