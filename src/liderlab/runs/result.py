"""The content of metrics.jsonl and result.json."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..distributed.launch import describe_ranks
from ..functional import metrics
from ..training.events import Event, Measured, TaskDone
from .build import Run
from .provenance import versions


def metrics_line(work: Run, event: Event) -> dict[str, Any] | None:
    """The line of metrics.jsonl for an event; None for a step that is not logged."""
    if isinstance(event, Measured):
        return {"kind": "anytime", **event.point}
    if isinstance(event, TaskDone):
        index, evaluation = event.task.index, event.evaluation
        rows = {
            "class_incremental": evaluation.class_incremental,
            "task_incremental": evaluation.task_incremental,
            "memory_accuracy": evaluation.on_memory,
        }
        return {
            "kind": "task",
            "step": work.loop.steps,
            "task": index,
            **{name: [_finite(v) for v in matrix[index].tolist()] for name, matrix in rows.items()},
            **({"anytime": event.point} if event.point else {}),
        }
    last_of_epoch = event.batch == event.batches - 1
    if work.loop.steps % work.config.log_every and not last_of_epoch:
        return None
    return {
        "kind": "step",
        "step": work.loop.steps,
        "task": event.task.index,
        "fit": event.fit.name,
        "epoch": event.epoch,
        "terms": {name: _finite(float(value)) for name, value in event.terms.items()},
        "readings": {
            name: _finite(value)
            for regularizer in work.loop.regularizers
            for name, value in regularizer.readings().items()
        },
    }


def _finite(value: float) -> float | None:
    """The value, or None: JSON has neither NaN nor infinity."""
    return value if math.isfinite(value) else None


def resolved(work: Run) -> dict[str, Any]:
    """Choices that regularisers made by themselves, such as LiDER's stages, by their names."""
    names = zip(work.config.regularizers, work.loop.regularizers, strict=True)
    return {name: found for name, regularizer in names if (found := regularizer.resolved())}


def _per_sample(matrix: Tensor, images: list[int]) -> dict[str, float | None]:
    """FAA and AIA in which every test image weighs the same, not every task."""
    weights = torch.tensor(images)
    return {
        "faa_per_sample": _finite(metrics.final_average_accuracy(matrix, weights)),
        "aia_per_sample": _finite(metrics.average_incremental_accuracy(matrix, weights)),
    }


def result_of(work: Run, seconds: float, cpu: float | None) -> dict[str, Any]:
    """The content of result.json."""
    stream, loop, cost = work.stream, work.loop, work.loop.cost
    parallel = {} if loop.team.size == 1 else describe_ranks(loop.team, work.config.strategy)
    accuracies = loop.evaluation.summary()
    for setting, matrix in (
        ("class_incremental", loop.evaluation.class_incremental),
        ("task_incremental", loop.evaluation.task_incremental),
    ):
        accuracies[setting] |= _per_sample(matrix, work.origin["data"]["test"])
    for setting, values in (loop.anytime.summary() if loop.anytime else {}).items():
        accuracies[setting] |= values
    if stream.setting == "domain-incremental":  # the classes of an unseen domain are predicted
        accuracies["class_incremental"]["fwt"] = accuracies["task_incremental"]["fwt"]
    return {
        **accuracies,
        "setting": stream.setting,
        "config": work.config.model_dump(mode="json"),
        "scale": work.config.scale and work.config.scale.model_dump(mode="json"),
        "classes": list(stream.names),
        "image_shape": list(stream.image_shape),
        "normalisation": {"mean": stream.transform.mean, "std": stream.transform.std},
        "resolved": resolved(work),
        **work.origin,
        **({"parallel": parallel} if parallel else {}),
        "versions": versions(),
        "steps": loop.steps,
        "skipped_steps": loop.skipped,
        **({"early_stopping": loop.stopping.fits} if loop.stopping else {}),
        "passes": cost.passes,
        "seconds_training": None if cost.passes is None else round(cost.seconds, 2),
        "images_per_second": round(cost.passes / cost.seconds, 1)
        if cost.passes and cost.seconds
        else None,
        "seconds": round(seconds, 2),
        "seconds_cpu": None if cpu is None else round(cpu, 2),
        "seconds_evaluating": [round(s, 2) for s in loop.evaluating],
    }
