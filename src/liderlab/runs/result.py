"""What a run writes down: the lines of metrics.jsonl, and result.json."""

from __future__ import annotations

import math
from typing import Any

from ..distributed.launch import described
from ..training.loop import Event, Loop, TaskDone
from .build import Run
from .provenance import versions


def metrics_line(work: Run, event: Event) -> dict[str, Any] | None:
    """What metrics.jsonl says about an event; nothing for most steps."""
    if isinstance(event, TaskDone):
        index, evaluation = event.task.index, event.evaluation
        rows = {
            name: [None if v != v else v for v in getattr(evaluation, name)[index].tolist()]
            for name in ("class_incremental", "task_incremental")
        }
        memory = [None if v != v else v for v in evaluation.on_memory[index].tolist()]
        return {
            "kind": "task",
            "step": work.loop.steps,
            "task": index,
            **rows,
            "memory_accuracy": memory,
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
        "readings": {name: _finite(value) for name, value in readings(work.loop).items()},
    }


def _finite(value: float) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return value if math.isfinite(value) else None


def readings(loop: Loop) -> dict[str, float]:
    """λ and targets of every stage, and whatever else the regularisers have to tell."""
    return {name: value for r in loop.regularizers for name, value in r.readings().items()}


def resolved(work: Run) -> dict[str, Any]:
    """What was left to the regularisers to settle, by their names."""
    names = zip(work.config.regularizers, work.loop.regularizers, strict=True)
    return {name: found for name, regularizer in names if (found := regularizer.resolved())}


def result_of(work: Run, seconds: float, cpu: float | None) -> dict[str, Any]:
    """What result.json says."""
    stream = work.stream
    return {
        **work.loop.evaluation.summary(),
        "config": work.config.model_dump(mode="json"),
        "scale": work.config.scale and work.config.scale.model_dump(mode="json"),
        "classes": list(stream.names),
        "image_shape": list(stream.image_shape),
        "normalisation": {"mean": stream.transform.mean, "std": stream.transform.std},
        "resolved": resolved(work),
        **work.origin,
        **(
            {"parallel": described(work.loop.team, work.config.strategy)}
            if work.loop.team.size > 1
            else {}
        ),
        "versions": versions(),
        "steps": work.loop.steps,
        "skipped_steps": work.loop.skipped,
        "seconds": round(seconds, 2),
        "seconds_cpu": None if cpu is None else round(cpu, 2),
        "seconds_evaluating": [round(s, 2) for s in work.loop.evaluating],
    }
