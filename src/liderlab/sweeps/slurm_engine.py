"""Runs as Slurm jobs, by submitit. The run folders must be shared by all nodes.

All runs that wait are handed over at once, as one job array: the queue is Slurm's business.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..runs.planned_run import PlannedRun
from .engine import Ended
from .optional_packages import require
from .worker import Ending, Job, execute


class Execution:
    """What a job does. Slurm takes jobs away and brings them back: they go on then."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self) -> Ending:
        return execute(self.job)

    def checkpoint(self) -> Any:
        """Called before the job is taken away; the run's own last checkpoint is what counts."""
        return require("submitit", "slurm", "--engine slurm").helpers.DelayedSubmission(self)


class SlurmEngine:
    """folder: for the jobs' scripts and logs. options: of submitit's `update_parameters`, such as
    timeout_min, mem_gb, slurm_partition; and `cluster`: "local" runs the jobs here, for a trial.

    workers: at most so many runs at a time.
    """

    def __init__(
        self, folder: Path, workers: int | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self._submitit = require("submitit", "slurm", "--engine slurm")
        given = dict(options or {})
        cluster = given.pop("cluster", "slurm")
        if cluster == "slurm" and shutil.which("srun") is None:
            raise UserError(
                "--engine slurm: there is no srun here; start it where jobs can be submitted, or "
                "try it out without Slurm: --slurm cluster=local"
            )
        self._workers, self._given, self._local = workers, given, cluster != "slurm"
        self._jobs: dict[str, tuple[PlannedRun, Any]] = {}
        self._cancelled: set[str] = set()
        try:
            self._executor = self._submitit.AutoExecutor(folder.absolute(), cluster=cluster)
            self._update({})
        except (ValueError, NameError, RuntimeError, TypeError) as error:
            text = " ".join(str(error).split())
            raise UserError(f"--slurm: {text}") from None

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        room = len(waiting) if self._workers is None else self._workers - len(self._jobs)
        started = list(waiting[: max(0, room)])
        if not started:
            return []
        threads = max(plan.config.threads or 1 for plan in started)
        gpus = max(int(plan.config.device == "cuda") for plan in started)
        self._update({"cpus_per_task": threads, "gpus_per_node": gpus})
        jobs = self._executor.submit_array([Execution(Job.of(plan)) for plan in started])
        self._jobs |= {plan.name: (plan, job) for plan, job in zip(started, jobs, strict=True)}
        return started

    def ended(self, seconds: float) -> list[Ended]:
        gone = [plan for plan, job in self._jobs.values() if job.done()]
        if not gone:
            time.sleep(seconds)
        return [self._end(plan) for plan in gone]

    def cancel(self, plan: PlannedRun) -> None:
        if plan.name in self._jobs:
            self._cancelled.add(plan.name)
            self._jobs[plan.name][1].cancel(check=False)

    def close(self) -> None:
        for _, job in self._jobs.values():
            job.cancel(check=False)

    def _update(self, resources: Mapping[str, Any]) -> None:
        self._executor.update_parameters(**{"name": "lider", **resources, **self._given})

    def _end(self, plan: PlannedRun) -> Ended:
        _, job = self._jobs.pop(plan.name)
        try:
            ending: Ending = job.result()
            return Ended(plan, ending)
        except Exception as error:  # whatever the job's process could not say itself
            if plan.name in self._cancelled:
                return Ended(plan, "stopped")
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return Ended(plan, None, f"job {job.job_id}: {lines[0]}")
