"""How a run grows with the number of its tasks and classes.

    python benchmarks/growth.py [--figure docs/growth.png]

ER-ACE with a memory of 500 on synthetic images (8x8, eight per class), a small convnet, batches of
16 + 16, one thread. Each size is a process of its own that trains the last two tasks only, where a
step and the end of a task are slowest: all earlier tasks are evaluated there. Processor time.
"""

import argparse
import io
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

SIZES = [(10, 100), (100, 100), (10, 1000), (100, 1000), (1000, 1000), (100, 10**4), (1000, 10**4)]
COLUMNS = {
    "step": "a step, ms",
    "end": "end of a task, s",
    "memory": "peak memory, MB",
    "checkpoint": "checkpoint, MB",
    "result": "metrics in result.json, MB",
}


def measure(tasks: int, classes: int) -> dict[str, float]:
    import torch

    from liderlab.config.merging import make_config
    from liderlab.runs.build import build, completed
    from liderlab.training.events import Cursor, StepDone

    benchmark = {"name": "synthetic", "tasks": tasks, "classes": classes, "per_class": 8, "side": 8}
    config = make_config(
        {
            "benchmark": benchmark,
            "method": "er-ace",
            "backbone": {"name": "convnet-small"},
            "memory": {"size": 500},
            "training": {"epochs": 1, "batch_size": 16},
        }
    )
    torch.set_num_threads(1)
    loop = build(completed(config)).loop
    first = loop.stream.tasks[0].train
    loop.memory.offer(loop.generators("memory"), **first.rows(torch.arange(len(first))))
    loop.evaluation.untrained.zero_()  # measured bit by bit in the tasks before
    loop.cursor = Cursor(task=tasks - 2)
    times: dict[bool, list[float]] = {True: [], False: []}
    before = time.process_time()
    for event in loop:
        times[isinstance(event, StepDone)].append(time.process_time() - before)
        before = time.process_time()
    saved = io.BytesIO()
    torch.save(loop.state_dict(), saved)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "step": 1000 * median(times[True]),
        "end": min(times[False]),
        "memory": peak,
        "checkpoint": saved.tell() / 1e6,
        "result": len(json.dumps(loop.evaluation.summary())) / 1e6,
    }


def measured_apart(tasks: int, classes: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--size", str(tasks), str(classes)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def draw(found: dict[tuple[int, int], dict[str, float]], path: Path) -> None:
    """One panel per column, over tasks x classes, with a line of slope one from the first size."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(COLUMNS), figsize=(14, 3), layout="constrained")
    products = [tasks * classes for tasks, classes in found]
    for axis, (column, title) in zip(axes, COLUMNS.items(), strict=True):
        values = [row[column] for row in found.values()]
        axis.loglog(products, values, "o")
        axis.loglog(products, [values[0] * p / products[0] for p in products], ":", color="gray")
        axis.set(title=title, xlabel="tasks x classes")
    axes[0].set_ylim(axes[0].get_ylim()[0], None)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path, help="where to draw the table")
    parser.add_argument("--size", type=int, nargs=2, help="TASKS CLASSES: measure here, print JSON")
    options = parser.parse_args()
    if options.size:
        print(json.dumps(measure(*options.size)))
        return
    found = {}
    print("| tasks | classes |", " | ".join(COLUMNS.values()), "|")
    print("|---:|---:|" + "---:|" * len(COLUMNS))
    for size in SIZES:
        found[size] = row = measured_apart(*size)
        cells = [str(n) for n in size] + [f"{row[column]:.2f}" for column in COLUMNS]
        print("|", " | ".join(cells), "|", flush=True)
    if options.figure:
        draw(found, options.figure)


if __name__ == "__main__":
    main()
