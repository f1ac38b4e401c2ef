"""The run of each case: its name, configuration and folder. No torch needed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ...config.identity import identity
from ...config.schema import RunConfig
from ...runs.planned_run import PlannedRun
from .cases import Case, Request, config_of
from .study_definition import Study


def plan_runs(study: Study, request: Request, out: Path) -> list[tuple[Case, PlannedRun]]:
    """Each case with its run; cases of the same configuration share one."""
    return [
        (case, plan_run(config_of(case, request, study.settings), out))
        for case in study.cases(request)
    ]


def plan_run(config: RunConfig, out: Path) -> PlannedRun:
    name = run_name(config)
    return PlannedRun(name, config, out / "runs" / name)


def run_name(config: RunConfig) -> str:
    """A readable name, different for different configurations."""
    text = json.dumps(identity(config, "study"), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    parts = [config.benchmark.name, config.method.name, *config.regularizers]
    return "-".join([*parts, f"b{config.memory.size}", f"seed{config.seed}", digest])
