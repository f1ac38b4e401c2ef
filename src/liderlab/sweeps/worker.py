"""The work of a worker, on any engine: execute one run and report how it ended."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..config.merging import make_config
from ..errors import Stopped
from ..runs.accuracy_figure import leave_figure
from ..runs.execute import run
from ..runs.folder import Busy, OtherConfiguration
from ..runs.planned_run import PlannedRun
from .failure_file import clear_failure, write_failure

Ending = Literal["done", "failed", "stopped", "busy"]
"""busy: another process holds the run folder and executes the run."""

ENVIRONMENT = ("LIDER_DATA",)  # variables that workers inherit, also on other machines


@dataclass(frozen=True)
class Job:
    """A planned run in plain values, which any process on any machine can execute."""

    config: dict[str, Any]
    folder: str
    directory: str = field(
        default_factory=os.getcwd
    )  # where relative paths in the configuration start
    environment: dict[str, str] = field(
        default_factory=lambda: {k: os.environ[k] for k in ENVIRONMENT if k in os.environ}
    )

    @classmethod
    def of(cls, plan: PlannedRun) -> Job:
        return cls(plan.config.model_dump(mode="json"), str(plan.folder.absolute()))


def execute(job: Job) -> Ending:
    """Begin or resume the run. An error goes into its folder."""
    folder = Path(job.folder)
    os.environ.update(job.environment)
    if os.path.isdir(job.directory):
        os.chdir(job.directory)
    try:
        result = run(make_config(job.config), folder, existing="resume")
        leave_figure(result, folder)
    except (Stopped, KeyboardInterrupt):
        return "stopped"
    except Busy:
        return "busy"
    except OtherConfiguration:  # the scheduler says so; the folder belongs to that run
        return "failed"
    except Exception as error:
        write_failure(folder, str(error) or type(error).__name__, error)
        return "failed"
    clear_failure(folder)
    return "done"
