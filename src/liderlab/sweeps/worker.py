"""What happens in a worker, whatever engine started it: one run, to whatever end."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..config.merging import make_config
from ..errors import Stopped
from ..runs.accuracy_figure import leave_figure
from ..runs.execute import run
from ..runs.folder import Busy
from ..runs.planned_run import PlannedRun
from .failure_file import clear_failure, write_failure

Ending = Literal["done", "failed", "stopped", "busy"]
"""busy: another process has the folder, and will see to it."""

PASSED_ON = ("LIDER_DATA",)


@dataclass(frozen=True)
class Job:
    """A plan in plain values, that any process on any machine can take up."""

    config: dict[str, Any]
    folder: str
    directory: str = field(default_factory=os.getcwd)  # relative names in a configuration hold here
    environment: dict[str, str] = field(
        default_factory=lambda: {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    )

    @classmethod
    def of(cls, plan: PlannedRun) -> Job:
        return cls(plan.config.model_dump(mode="json"), str(plan.folder.absolute()))


def execute(job: Job) -> Ending:
    """Begin the run, or go on with it; an error stays in its folder."""
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
    except Exception as error:
        write_failure(folder, str(error) or type(error).__name__, error)
        return "failed"
    clear_failure(folder)
    return "done"
