"""A rough estimate of the cost of a study: counted steps times measured times. No torch.

    seconds = COMMAND + Σ over runs  RUN + steps · (STEP + Σ over passes  STEP + rows · s + LiDER's)

s: seconds per row, by network, width and image. All times are processor time of one core of an AMD
EPYC server (AVX2, torch 2.13): a busy machine takes longer, two cores about half, a GPU far less.
The constants were fitted to the runs of the ledger (split-cifar100, width 8 and 64) and to the
studies at smoke scale, and meet each of these within a factor of 1.5 (the tests compare).
Not counted: the measurements of finished runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...config.scale import shrink
from ...streams import BENCHMARKS
from .case_runs import plan_runs
from .cases import Request
from .study_definition import Study

IMAGES_PER_CLASS = {
    "split-digits": 144,
    "split-cifar100": 500,
    "split-cifar10": 5000,
    "split-miniimagenet": 500,
    "split-cub200": 30,
    "split-tinyimagenet": 500,
}
"""Training images; benchmarks that are not listed count as 500."""

SECONDS_PER_ROW = {
    ("convnet-small", 32, 8): 0.000278,
    ("convnet-small", 16, 8): 0.000118,
    ("resnet18", 64, 32): 0.0551,
    ("resnet18", 16, 32): 0.00382,
    ("resnet18", 8, 32): 0.0015,
    ("efficientnet-b2", 32, 84): 0.0500,
    ("efficientnet-b2", 8, 84): 0.0101,
    ("efficientnet-b2", 4, 84): 0.00968,
    ("resnet50", 64, 224): 0.451,
    ("resnet50", 16, 224): 0.0508,
    ("resnet50", 8, 224): 0.0227,
    ("efficientnet-b0", 32, 224): 0.117,
    ("efficientnet-b1", 32, 224): 0.155,
    ("efficientnet-b2", 32, 224): 0.165,
    ("efficientnet-b3", 32, 224): 0.246,
    ("efficientnet-b4", 32, 224): 0.347,
    ("efficientnet-b5", 32, 224): 0.532,
    ("efficientnet-b6", 32, 224): 0.663,
    ("efficientnet-b7", 32, 224): 1.38,
    ("efficientnet-lite0", 32, 96): 0.0289,
}
"""By network, width and side of the image."""

PASSES = {"finetune": 1, "joint": 1, "gdumb": 1.3, "icarl": 1.7, "er-ace": 2, "der++": 3}
PASSES |= {"x-der-rpc": 3, "gmed": 6}
"""Batches through the network per step, forward and backward; 2 for methods that are not here."""
WATCHED = {"finetune": 0, "joint": 0, "der++": 2, "x-der-rpc": 2}
"""Passes that LiDER watches; 1 for methods that are not here."""
COMMAND, RUN, STEP = 8.0, 0.3, 0.0005  # seconds: of a study, a run, and a step or pass at least
EVALUATION = 1.2  # a run's time as a factor of its passes'


@dataclass(frozen=True)
class StudyCost:
    """Different runs, and the optimiser steps and seconds (one core) of all of them together."""

    runs: int
    steps: int
    seconds: float


def estimate_cost(study: Study, request: Request) -> StudyCost:
    """The cost of all runs of the study, finished ones included."""
    plans = {plan.name: plan for _, plan in plan_runs(study, request, Path())}
    trees = [shrink(plan.config.model_dump()) for plan in plans.values()]
    steps, seconds = sum(map(count_steps, trees)), sum(map(run_seconds, trees))
    return StudyCost(len(plans), steps, COMMAND + seconds)


def run_seconds(tree: dict[str, Any]) -> float:
    """Processor time of a run, from its configuration."""
    batch, method, row = (
        tree["training"]["batch_size"],
        tree["method"]["name"],
        seconds_per_row(tree),
    )
    step = STEP + PASSES.get(method, 2) * (STEP + EVALUATION * batch * row)
    if "lider" in tree["regularizers"]:
        step += WATCHED.get(method, 1) * (0.003 + batch * (0.05 * row + 4.5e-7 * _side(tree) ** 2))
    return RUN + count_steps(tree) * step


def count_steps(tree: dict[str, Any]) -> int:
    """Optimiser steps of a run, from its configuration.

    >>> from liderlab.config.merging import make_config
    >>> count_steps(make_config({"preset": "cifar100-500-er-ace"}).model_dump())
    39500
    """
    facts = BENCHMARKS.entry(tree["benchmark"]["name"]).facts
    per_class = IMAGES_PER_CLASS.get(tree["benchmark"]["name"], 500)
    per_class = min(per_class, tree["benchmark"]["train_per_class"] or per_class)
    tasks = tree["benchmark"]["tasks"] or facts["tasks"] or 1
    images = per_class * (facts["classes"] or 10)
    batch, epochs = tree["training"]["batch_size"], tree["training"]["epochs"]
    if tree["method"]["name"] == "gdumb":
        return math.ceil(tree["memory"]["size"] / batch) * int(tree["method"]["fit_epochs"])
    if tree["method"]["name"] == "joint":
        return math.ceil(images / batch) * epochs
    in_task = images / tasks / batch
    whole = in_task >= 1 and tree["training"]["drop_last"]
    return tasks * (math.floor(in_task) if whole else math.ceil(in_task)) * epochs


def seconds_per_row(tree: dict[str, Any]) -> float:
    """Measured, or scaled from the nearest measurement: linear in pixels, power 1.6 in width."""
    name = tree["backbone"]["name"]
    side = _side(tree)
    known = {k: v for k, v in SECONDS_PER_ROW.items() if k[0] == name} or SECONDS_PER_ROW
    width = tree["backbone"].get("width") or max(w for _, w, _ in known)

    near = min(known, key=lambda k: abs(math.log(k[1] / width)) + abs(math.log(k[2] / side)))
    return known[near] * (width / near[1]) ** 1.6 * (side / near[2]) ** 2


def _side(tree: dict[str, Any]) -> int:
    """Of the benchmark's images, in pixels."""
    facts = BENCHMARKS.entry(tree["benchmark"]["name"]).facts
    return int(tree["benchmark"].get("size") or facts["image"].rpartition("x")[2])
