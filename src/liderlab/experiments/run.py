"""One run, from its configuration to its folder, however often it is interrupted."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import numpy
import torch

from .. import __version__
from ..errors import RunFailed, UserError
from ..training.learner import NotFinite
from ..training.loop import Event, Loop, TaskDone
from .build import Run, build, completed
from .config import Interval, RunConfig
from .folder import RunFolder
from .interrupt import Stopped, stop_requests

Listener = Callable[[Run, Event], None]
Existing = Literal["refuse", "replace", "resume"]


def run(
    config: RunConfig,
    out: str | Path,
    *,
    existing: Existing = "refuse",
    listener: Listener | None = None,
) -> dict[str, Any]:
    """Train and evaluate as configured, write the run's folder, return its result.

    existing: what to do with an earlier run there. "resume" goes on where its last checkpoint is,
    and the result is the same, to the bit, as if it had never stopped; a finished one is returned
    as it is.
    """
    config = completed(config)
    torch.set_num_threads(config.threads or torch.get_num_threads())
    work = build(config)  # before the folder: bad input leaves nothing behind
    folder = RunFolder(out)
    if folder.taken and existing == "refuse":
        raise UserError(f"{out} exists and is not empty: choose another --out, or --force")
    with folder.lock():
        if existing == "resume" and folder.begun:
            folder.check_same(config)
            if folder.finished:
                return folder.result()
        else:
            folder.begin(config)
        with deterministic(bool(config.deterministic)):
            return _Execution(work, folder, listener).go()


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Let torch refuse, rather than run, what may differ from time to time."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(wanted)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


class _Execution:
    """A run under way: its loop, its folder, its clock."""

    def __init__(self, work: Run, folder: RunFolder, listener: Listener | None) -> None:
        self._work, self._folder, self._listener = work, folder, listener
        self._interval = Interval.parse(work.config.checkpoint_every)
        self._seconds, self._logged = 0.0, 0
        if (state := folder.checkpoints.latest()) is not None:
            self._seconds, self._logged = state.pop("seconds"), state.pop("logged")
            work.loop.load_state_dict(state)
        self._started = self._saved_at = time.monotonic()
        self._saved_steps = work.loop.steps

    def go(self) -> dict[str, Any]:
        """To the end; whatever stops it, the last checkpoint is whole."""
        saved = f"the last checkpoint is intact: lider resume {self._folder.path}"
        try:
            return self._go()
        except OSError as error:
            raise RunFailed(f"cannot write: {error.strerror or error}; {saved}") from None
        except NotFinite as error:
            raise RunFailed(
                f"{error}: try a smaller learning rate, or --on-nonfinite skip; {saved}"
            ) from None

    def _go(self) -> dict[str, Any]:
        with self._folder.open_metrics(self._logged) as metrics, stop_requests() as request:
            for event in self._work.loop:
                self._log(event, metrics)
                if self._listener:
                    self._listener(self._work, event)
                stop = request.signal  # looked at once: what is saved is what is said
                if isinstance(event, TaskDone) or stop or self._due():
                    self._save(metrics)
                if stop:
                    raise Stopped(stop, str(self._folder.path))
        result = _result(self._work, self._elapsed())
        self._folder.write_result(result)
        return result

    def _log(self, event: Event, metrics: IO[bytes]) -> None:
        if line := metrics_line(self._work, event):
            metrics.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def _due(self) -> bool:
        return self._interval.due(
            self._work.loop.steps - self._saved_steps, time.monotonic() - self._saved_at
        )

    def _save(self, metrics: IO[bytes]) -> None:
        metrics.flush()
        state = self._work.loop.state_dict()
        logged, seconds = metrics.tell(), self._elapsed()
        self._folder.checkpoints.write({**state, "logged": logged, "seconds": seconds})
        self._saved_at, self._saved_steps = time.monotonic(), self._work.loop.steps

    def _elapsed(self) -> float:
        return self._seconds + time.monotonic() - self._started


def metrics_line(work: Run, event: Event) -> dict[str, Any] | None:
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
        "scale": work.config.scale and work.config.scale.model_dump(mode="json"),
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
