"""Runs as Ray tasks, on the nodes of a Ray cluster. All nodes must share the run folders.

Ray places the runs. When a node is lost, the scheduler starts its runs again, and they resume from
their checkpoints on another node.
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
from .worker import Job, execute


class RayEngine:
    """address: of the cluster ("auto": the one of this machine); None: start a new one here.

    workers: most runs at a time; None: as many as the nodes have room for. A run asks for as many
    CPUs as it has threads, and for a GPU if its device is `cuda`.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self._ray = require("ray", "ray", "--engine ray")
        self._workers = workers
        self._running: dict[Any, PlannedRun] = {}
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # sends nothing to Ray's makers
        try:
            self._ray.init(
                address or "local",  # without an address Ray would join any cluster that it finds
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            text = " ".join(str(error).split())
            raise UserError(f"cannot reach a Ray cluster at {address}: {text}") from None
        self._remote = self._ray.remote(max_retries=0)(execute)  # the scheduler decides on retries

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
        return [self._remove(reference) for reference in ready]

    def cancel(self, plan: PlannedRun) -> None:
        for reference, running in self._running.items():
            if running.name == plan.name:
                self._ray.cancel(reference, force=False)

    def close(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._ray.shutdown()

    def _remove(self, reference: Any) -> Ended:
        plan = self._running.pop(reference)
        try:
            return Ended(plan, self._ray.get(reference))
        except self._ray.exceptions.RayError as error:
            return Ended(plan, None, str(error).strip().splitlines()[0])
