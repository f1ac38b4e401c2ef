"""Runs as Ray tasks, on whatever nodes a Ray cluster has. The run folders must be shared by all.

Ray is left to place the runs; when a node is gone, the scheduler has its runs started again, and
they go on from their checkpoints elsewhere.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from ..errors import UserError
from ..runs.planned_run import PlannedRun
from .engine import Ended
from .optional_packages import require
from .worker import Ending, Job, execute


class RayEngine:
    """address: of the cluster ("auto": the one of this machine); None: a new one, here.

    workers: at most so many runs at a time; None: as many as the nodes have room for. A run asks
    for as many CPUs as it has threads, and for a GPU if its device is `cuda`.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self._ray = require("ray", "ray", "--engine ray")
        self._workers = workers
        self._running: dict[Any, PlannedRun] = {}
        self._cancelled: set[str] = set()
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            self._ray.init(
                address or "local",  # without a word Ray would join whatever it finds traces of
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            text = " ".join(str(error).split())
            raise UserError(f"cannot reach a Ray cluster at {address}: {text}") from None
        # a retry by Ray would know nothing of our rules: the scheduler decides
        self._remote = self._ray.remote(max_retries=0)(execute)

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        room = len(waiting) if self._workers is None else self._workers - len(self._running)
        started = list(waiting[: max(0, room)])
        for plan in started:
            task = self._remote.options(
                num_cpus=plan.config.threads or 1,
                num_gpus=1 if plan.config.device == "cuda" else 0,
                name=plan.name,
            )
            self._running[task.remote(Job.of(plan))] = plan
        return started

    def ended(self, seconds: float) -> list[Ended]:
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        return [self._end(reference) for reference in ready]

    def cancel(self, plan: PlannedRun) -> None:
        for reference, running in self._running.items():
            if running.name == plan.name:
                self._cancelled.add(plan.name)
                self._ray.cancel(reference, force=False)

    def close(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._ray.shutdown()

    def _end(self, reference: Any) -> Ended:
        plan = self._running.pop(reference)
        try:
            ending: Ending = self._ray.get(reference)
            return Ended(plan, ending)
        except self._ray.exceptions.RayError as error:
            if plan.name in self._cancelled:
                return Ended(plan, "stopped")
            return Ended(plan, None, str(error).strip().splitlines()[0])
