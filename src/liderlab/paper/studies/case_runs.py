"""Which runs a study needs, and where they live. No torch needed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ...config.schema import RunConfig
from .cases import Case, Request, config_of
from .study_definition import PlannedRun, Study

NOT_IDENTITY = (
    *("schema", "devices", "strategy", "threads", "log_every", "checkpoint_every", "on_nonfinite"),
)
"""What two runs may differ in and still be the same run to a study."""


def plan_runs(study: Study, request: Request, out: Path) -> list[tuple[Case, PlannedRun]]:
    """Each case with its run; cases that come to the same thing share one."""
    planned = []
    for case in study.cases(request):
        config = config_of(case, request, study.settings)
        name = run_name(config)
        planned.append((case, PlannedRun(name, config, out / "runs" / name)))
    return planned


def run_name(config: RunConfig) -> str:
    """Readable, and different for different configurations."""
    tree = {k: v for k, v in config.model_dump(mode="json").items() if k not in NOT_IDENTITY}
    digest = hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:8]
    parts = [config.benchmark.name, config.method.name, *config.regularizers]
    return "-".join([*parts, f"b{config.memory.size}", f"seed{config.seed}", digest])
