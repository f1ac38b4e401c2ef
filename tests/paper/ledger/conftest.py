"""Records made by hand, and one tiny campaign that is really run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liderlab.paper.ledger.campaign import campaign
from liderlab.paper.ledger.record import LedgerRecord
from liderlab.paper.ledger.repeat_command import repeat_command
from liderlab.paper.studies.cases import Case, preset_of
from liderlab.runs.execute import run

SMALLER = {
    "training.epochs": {"from": 50, "to": 4},
    "backbone.width": {"from": 64, "to": 8},
}


@pytest.fixture
def record() -> Callable[..., LedgerRecord]:
    """A record with these numbers; everything else as a run of the case would have it."""

    def make(case: Case, faa: float, ff: float | None = 10.0, scale: str = "cpu", **more: Any):
        small = SMALLER if scale == "cpu" else {}
        preset = preset_of(case).config
        config = {
            **{section: dict(preset[section]) for section in ("benchmark", "backbone", "training")},
            "method": preset["method"],
            "regularizers": preset["regularizers"],
            "memory": {"size": case.buffer or 200},
            "scale": {"name": scale, "changes": small},
            "seed": case.seed,
        }
        for key, change in small.items():
            section, _, name = key.partition(".")
            config[section][name] = change["to"]
        metrics = {"faa": faa, "ff": ff, "bwt": None, "fwt": None, "aia": 50.0}
        values = {
            "run": f"run-{case.seed}",
            "case": case,
            "scale": scale,
            "class_incremental": metrics,
            "task_incremental": {**metrics, "faa": 80.0},
            "memory_accuracy": faa + 20,
            "gap": 20.0,
            "matrix": [[90.0, None], [faa - 5, faa + 5]],
            "curves": None,
            "steps": 100,
            "seconds": 60.0,
            "seconds_cpu": 50.0,
            "network": "0f" * 32,
            "data": {"fingerprint": "0f"},
            "versions": {
                "liderlab": "0.1.0",
                "torch": "2.13",
                "python": "3.11",
                "processor": "x",
                "instructions": "AVX2",
                "threads": 1,
            },
            "commit": None,
            "analyses": {},
            "config": config,
            "command": repeat_command(case, scale),
        }
        return LedgerRecord(**(values | more))

    return make


PAIR = campaign(["single-epoch"], scale="smoke")[:2]


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ER-ACE alone and with LiDER, on the embedded digits, as `lider ledger measure` runs them."""
    out = tmp_path_factory.mktemp("ledger")
    for item in PAIR:
        plan = item.plan(out)
        run(plan.config, plan.folder)
    return out
