"""Speed-up of two workers over one, and the overhead of each engine per run.

    python benchmarks/sweep_speedup.py --runs 16 --epochs 20 --engines local ray slurm

Speed-up: seconds of the sweep with 1 worker over those with 2. Overhead per run: worker-seconds of
the sweep after the first run has begun, less the seconds of the runs themselves, per run.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from liderlab.config.merging import make_config
from liderlab.runs.folder import RunFolder
from liderlab.runs.planned_run import PlannedRun
from liderlab.sweeps.engine import make_engine
from liderlab.sweeps.scheduler import run_all


def plans(count: int, epochs: int, folder: Path) -> list[PlannedRun]:
    fields = {"benchmark": "synthetic", "method": "er-ace", "training": {"epochs": epochs}}
    return [
        PlannedRun(str(seed), make_config(fields, {"seed": seed, "threads": 1}), folder / str(seed))
        for seed in range(count)
    ]


def measure(
    engine: str, workers: int, work: Sequence[PlannedRun], folder: Path
) -> dict[str, object]:
    slurm = ["cluster=local"] if engine == "slurm" else None
    began = time.time()
    outcomes = run_all(work, engine=make_engine(engine, workers, None, slurm, folder))
    seconds = time.time() - began
    assert all(outcome.state == "done" for outcome in outcomes)
    first = min((plan.folder / "config.yaml").stat().st_mtime for plan in work) - began
    training = sum(RunFolder(plan.folder).result()["seconds"] for plan in work)
    return {
        "engine": engine,
        "workers": workers,
        "runs": len(work),
        "seconds": round(seconds, 2),
        "until the first run": round(first, 2),
        "seconds per run, alone": round(training / len(work), 3),
        "overhead per run": round((workers * (seconds - first) - training) / len(work), 3),
        "load of the machine": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--engines", nargs="+", default=["local"])
    options = parser.parse_args()
    for engine in options.engines:
        for workers in (1, 2):
            with tempfile.TemporaryDirectory() as name:
                work = plans(options.runs, options.epochs, Path(name) / "runs")
                row = measure(engine, workers, work, Path(name))
                print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
