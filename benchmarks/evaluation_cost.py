"""The cost of `--evaluate every:50`: processor time of a step, and of one evaluation in a task.

    LIDER_DATA=… python benchmarks/evaluation_cost.py

ER-ACE on CIFAR-100 in ten tasks, ResNet18 of width 16, batches of 64, one thread; 200 test images
of each task seen.
"""

from __future__ import annotations

import time
from statistics import fmean, median

from liderlab.config.merging import make_config
from liderlab.runs.build import build, completed
from liderlab.training.events import Measured, StepDone

EVERY = 50


def main() -> None:
    config = make_config(
        {
            "benchmark": {"name": "split-cifar100", "train_per_class": 26, "test_per_class": 20},
            "method": "er-ace",
            "backbone": {"name": "resnet18", "width": 16},
            "training": {"epochs": 1, "batch_size": 64},
            "evaluate": "every:3",  # a task has four steps: each is evaluated in once
            "threads": 1,
        }
    )
    loop = build(completed(config)).loop
    steps: list[float] = []
    moments: dict[int, float] = {}
    before = time.process_time()
    for event in loop:
        now = time.process_time()
        if isinstance(event, StepDone) and event.task.index > 0 and event.batch < 3:
            steps.append(now - before)  # whole batches, with replay
        elif isinstance(event, Measured):
            moments.setdefault(event.task.index + 1, now - before)
        before = time.process_time()
    step, each = median(steps), median(seconds / tasks for tasks, seconds in moments.items())
    share = fmean(each * tasks for tasks in range(1, 11)) / (EVERY * step)
    print(f"a step: {step:.3f} s; an evaluation: {each:.3f} s for each task seen")
    print(f"ten tasks, every:{EVERY}: {100 * share:.1f} % more processor time")


if __name__ == "__main__":
    main()
