"""Time of a step that several processes share.

    python benchmarks/device_scaling.py --devices 1 2 --steps 20

An er-ace run with LiDER on ResNet18 of a given width, 32x32 images, batch 64 + 64, one thread per
process. The time of a step is the median over the second task on rank 0, which waits for the other
ranks in every step: by the wall clock, and in processor time, which leaves out the waiting.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from liderlab.config.merging import make_config
from liderlab.runs.build import Run
from liderlab.runs.execute import run
from liderlab.training.events import Event, StepDone


class Enough(Exception):
    """Raised after the last step that is timed."""


def step_seconds(devices: int, steps: int, width: int, strategy: str) -> list[tuple[float, float]]:
    """Seconds of each step of the second task, by the wall clock and in processor time."""
    times: list[tuple[float, float]] = []

    def listen(work: Run, event: Event) -> None:
        if isinstance(event, StepDone) and event.task.index == 1:
            times.append((time.perf_counter(), time.process_time()))
            if len(times) > steps:
                raise Enough

    config: dict[str, Any] = {
        "benchmark": {"name": "synthetic", "tasks": 2, "classes": 4, "per_class": 128, "side": 32},
        "method": "er-ace",
        "regularizers": {"lider": {}},
        "backbone": {"name": "resnet18", "width": width},
        "memory": {"size": 200},
        "training": {"batch_size": 64, "epochs": 1 + (steps + 2) // 4, "lr": 0.01},
        "devices": devices,
        "strategy": strategy,
        "threads": 1,
    }
    with tempfile.TemporaryDirectory() as folder, suppress(Enough):
        run(make_config(config), Path(folder) / "run", listener=listen)
    return [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument(
        "--rounds",
        type=int,
        default=2,
        help="each with all numbers of devices",
    )
    given = parser.parse_args()
    taken: dict[int, list[tuple[float, float]]] = {devices: [] for devices in given.devices}
    for _ in range(given.rounds):
        for devices in given.devices:
            taken[devices] += step_seconds(devices, given.steps, given.width, given.strategy)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for clock, name in enumerate(("wall clock", "processor time")):
        medians = {n: statistics.median(t[clock] for t in times) for n, times in taken.items()}
        first = medians[given.devices[0]]
        for devices, median in medians.items():
            speed = f"{1000 * median:.0f} ms a step, {first / median:.2f} x as fast"
            print(f"{name}, {devices} x 1 thread: {speed}")


if __name__ == "__main__":
    main()
