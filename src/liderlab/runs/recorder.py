"""Writes the files of a run while it trains: metrics, progress, checkpoints, result."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from typing import IO, Any

from ..config.field_values import CheckpointInterval
from ..training.events import Event, TaskDone
from ..types import State
from .build import Run
from .folder import RunFolder
from .result import metrics_line, result_of
from .trackers import Trackers

Listener = Callable[[Run, Event], None]
PROGRESS_EVERY = 1.0  # seconds


class Recorder:
    """Writes a run's folder, logs to its trackers and calls its listener; on rank 0 only."""

    def __init__(
        self,
        work: Run,
        folder: RunFolder,
        state: State | None,
        trackers: Trackers,
        listener: Listener | None,
    ) -> None:
        """state: the checkpoint that the run resumes from."""
        state = {"logged": 0, "seconds": 0.0, "seconds_cpu": 0.0} if state is None else state
        self._work, self._folder = work, folder
        self._trackers, self._listener = trackers, listener
        self._interval = CheckpointInterval.parse(work.config.checkpoint_every)
        self._metrics: IO[bytes]
        self._logged: int = state["logged"]  # bytes of metrics.jsonl
        self._start = time.monotonic() - state["seconds"]
        # checkpoints of older versions do not hold it
        cpu = state.get("seconds_cpu")
        self._cpu_start = None if cpu is None else time.process_time() - cpu
        self._saved_at, self._saved_steps = time.monotonic(), work.loop.steps
        self._progress_at = -math.inf

    def __enter__(self) -> Recorder:
        self._folder.check_held()
        self._metrics = self._folder.open_metrics(self._logged)
        self._work.loop.memory.open_files()
        self._work.pace.update(self._work.loop)
        return self

    def __exit__(self, *_: object) -> None:
        self._metrics.close()

    @property
    def _seconds(self) -> float:
        """Wall-clock time, over all processes that have worked on the run."""
        return time.monotonic() - self._start

    @property
    def _seconds_cpu(self) -> float | None:
        """CPU time of all threads, comparable even on a shared machine; None if unknown."""
        return None if self._cpu_start is None else time.process_time() - self._cpu_start

    def record(self, event: Event) -> None:
        """Log an event of the loop."""
        self._folder.check_held()
        self._work.pace.update(self._work.loop)
        if line := metrics_line(self._work, event):
            self._metrics.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            self._trackers.log(line)
            self._metrics.flush()  # for `lider watch`
        task_done = isinstance(event, TaskDone)
        if task_done or time.monotonic() - self._progress_at > PROGRESS_EVERY:
            self._write_progress()
        if self._listener:
            self._listener(self._work, event)
        if task_done and self._work.config.keep_tasks:
            # before the checkpoint that marks the task as done: a kill in between repeats both
            loop = self._work.loop
            state = {"network": loop.network.state_dict(), "method": loop.method.state_dict()}
            self._folder.keep_task(event.task.index, state)

    def _write_progress(self) -> None:
        pace, seconds = self._work.pace, round(self._seconds, 1)
        counted = {"step": pace.steps, "planned": pace.planned, "seconds": seconds}
        self._folder.write_progress({**counted, "speed": pace.speed, "left": pace.left})
        self._progress_at = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        steps = self._work.loop.steps - self._saved_steps
        return self._interval.due(steps, time.monotonic() - self._saved_at)

    def save(self) -> None:
        """Write a checkpoint."""
        self._folder.check_held()
        loop = self._work.loop
        self._metrics.flush()
        os.fsync(self._metrics.fileno())  # before the checkpoint, which states the length
        state = loop.state_dict() | {
            "logged": self._metrics.tell(),
            "seconds": self._seconds,
            "seconds_cpu": self._seconds_cpu,
            "seconds_evaluating": loop.evaluating,
            "seconds_training": loop.cost.seconds,
            "origin": self._work.origin,
            "config": self._work.config.model_dump(mode="json"),
        }
        self._folder.checkpoints.write(state)
        loop.memory.checkpointed(state["steps"], self._folder.checkpoints.oldest())
        self._saved_at, self._saved_steps = time.monotonic(), loop.steps

    def finish(self) -> dict[str, Any]:
        """Write the result of the finished run, and return it."""
        self._folder.check_held()
        result = result_of(self._work, self._seconds, self._seconds_cpu)
        self._folder.write_result(result)
        self._trackers.finish(self._work.loop.steps, result)
        return result
