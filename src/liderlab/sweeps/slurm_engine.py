"""Runs as Slurm jobs, submitted by submitit. All nodes must share the run folders.

All waiting runs are submitted at once, as one job array; Slurm does the queueing.
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


class ResumableJob:
    """A job's function; a job that Slurm preempts and requeues resumes its run."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self) -> Ending:
        return execute(self.job)

    def checkpoint(self) -> Any:
        """Resubmit the job; submitit calls this on preemption. The run has its own checkpoints."""
        return require("submitit", "slurm", "--engine slurm").helpers.DelayedSubmission(self)


class SlurmEngine:
    """folder: for the jobs' scripts and logs. workers: most runs at a time.

    options: of submitit's `update_parameters`, like timeout_min, mem_gb, slurm_partition; and
    `cluster`: "local" runs the jobs on this machine, to try them out.
    """

    def __init__(
        self, folder: Path, workers: int | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        submitit = require("submitit", "slurm", "--engine slurm")
        self._workers, self._options = workers, dict(options or {})
        self._jobs: dict[str, tuple[PlannedRun, Any]] = {}
        cluster = self._options.pop("cluster", "slurm")
        if cluster == "slurm" and shutil.which("srun") is None:
            raise UserError(
                "--engine slurm: there is no srun here; start it where jobs can be submitted, or "
                "try it out without Slurm: --slurm cluster=local"
            )
        try:
            self._executor = submitit.AutoExecutor(folder.absolute(), cluster=cluster)
            self._update()
        except (ValueError, NameError, RuntimeError, TypeError) as error:
            text = " ".join(str(error).split())
            raise UserError(f"--slurm: {text}") from None

    def start(self, waiting: Sequence[PlannedRun]) -> list[PlannedRun]:
        room = len(waiting) if self._workers is None else self._workers - len(self._jobs)
        started = list(waiting[: max(0, room)])
        if started:
            self._update(
                cpus_per_task=max(plan.config.threads or 1 for plan in started),
                gpus_per_node=max(int(plan.config.device == "cuda") for plan in started),
            )
            jobs = self._executor.submit_array([ResumableJob(Job.of(plan)) for plan in started])
            self._jobs |= {plan.name: (plan, job) for plan, job in zip(started, jobs, strict=True)}
        return started

    def ended(self, seconds: float) -> list[Ended]:
        gone = [plan for plan, job in self._jobs.values() if job.done()]
        if not gone:
            time.sleep(seconds)
        return [self._remove(plan) for plan in gone]

    def cancel(self, plan: PlannedRun) -> None:
        self._jobs[plan.name][1].cancel(check=False)

    def close(self) -> None:
        for _, job in self._jobs.values():
            job.cancel(check=False)

    def _update(self, **resources: int) -> None:
        self._executor.update_parameters(**{"name": "lider", **resources, **self._options})

    def _remove(self, plan: PlannedRun) -> Ended:
        _, job = self._jobs.pop(plan.name)
        try:
            return Ended(plan, job.result())
        except Exception as error:  # the job's process died before it could report
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return Ended(plan, None, f"job {job.job_id}: {lines[0]}")
