"""One run, from its configuration to its folder."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch

from .. import __version__
from ..training.loop import Event, Loop, StepDone, TaskDone
from .build import Run, build, completed
from .config import RunConfig
from .folder import RunFolder

Listener = Callable[[Run, Event], None]


def run(
    config: RunConfig,
    out: str | Path,
    *,
    force: bool = False,
    listener: Listener | None = None,
) -> dict[str, Any]:
    """Train and evaluate as configured, write the run's folder, return its result."""
    started = time.monotonic()
    config = completed(config)
    torch.set_num_threads(config.threads or torch.get_num_threads())
    work = build(config)
    folder = RunFolder.create(out, force=force)
    folder.write_config(config)
    with folder.open_metrics() as metrics:
        for event in work.loop:
            if line := _line(work, event):
                metrics.write(json.dumps(line, ensure_ascii=False) + "\n")
            if isinstance(event, TaskDone):
                folder.write_checkpoint(work.loop.state_dict())
            if listener:
                listener(work, event)
    result = _result(work, time.monotonic() - started)
    folder.write_result(result)
    return result


def _line(work: Run, event: Event) -> dict[str, Any] | None:
    """What metrics.jsonl says about an event; nothing for most steps."""
    if isinstance(event, TaskDone):
        index, evaluation = event.task.index, event.evaluation
        rows = {
            name: [None if v != v else v for v in getattr(evaluation, name)[index].tolist()]
            for name in ("class_incremental", "task_incremental")
        }
        return {"kind": "task", "step": work.loop.steps, "task": index, **rows}
    last_of_epoch = event.batch == event.batches - 1
    if work.loop.steps % work.config.log_every and not last_of_epoch:
        return None
    return {
        "kind": "step",
        "step": work.loop.steps,
        "task": event.task.index,
        "fit": event.fit.name,
        "epoch": event.epoch,
        "terms": {name: float(value) for name, value in event.terms.items()},
        "readings": readings(work.loop),
    }


def readings(loop: Loop) -> dict[str, float]:
    """λ and targets of every stage, and whatever else the regularisers have to tell."""
    return {name: value for r in loop.regularizers for name, value in r.readings().items()}


def _result(work: Run, seconds: float) -> dict[str, Any]:
    stream = work.stream
    return {
        **work.loop.evaluation.summary(),
        "config": work.config.model_dump(mode="json"),
        "classes": list(stream.names),
        "image_shape": list(stream.image_shape),
        "normalisation": {"mean": stream.transform.mean, "std": stream.transform.std},
        "versions": versions(),
        "seconds": round(seconds, 2),
    }


def versions() -> dict[str, Any]:
    """What the numbers may depend on."""
    return {
        "liderlab": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
    }


__all__ = ["Listener", "StepDone", "TaskDone", "run", "versions"]
