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
from tempfile import TemporaryDirectory

from liderlab.analysis.figure_style import (
    GREY,
    PAGE,
    SMALL,
    add_grid,
    add_heading,
    new_figure,
    save_figure,
)

SIZES = [(10, 100), (100, 100), (10, 1000), (100, 1000), (1000, 1000), (100, 10**4), (1000, 10**4)]
COLUMNS = {
    "step": "a step, ms",
    "end": "end of a task, s",
    "memory": "peak memory, MB",
    "checkpoint": "checkpoint, MB",
    "result": "result.json, MB",
    "report": "report.html, MB",
}
FACTS = ("synthetic 8x8 images", "er-ace, memory of 500", "one run each", "dotted: linear growth")


def measure(tasks: int, classes: int) -> dict[str, float]:
    import torch

    from liderlab.config.merging import make_config
    from liderlab.runs.build import build, completed
    from liderlab.runs.result import result_of
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
    work = build(completed(config))
    loop = work.loop
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
        **written(result_of(work, seconds=0.0, cpu=None)),
    }


def written(result: dict) -> dict[str, float]:
    """The sizes of a finished run's result.json and of a report about it, in MB."""
    from liderlab.report.page.html import write_report
    from liderlab.report.run_records import RunRecord

    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(json.dumps(result["config"]))
        (folder / "metrics.jsonl").touch()
        record = RunRecord(folder, "run", "finished", result["config"], result)
        write_report([record], folder / "report.html", memory=False)
        page = (folder / "report.html").stat().st_size
    return {"result": len(json.dumps(result)) / 1e6, "report": page / 1e6}


def measured_apart(tasks: int, classes: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--size", str(tasks), str(classes)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def draw(found: dict[tuple[int, int], dict[str, float]], path: Path) -> None:
    """One panel per column, over tasks x classes, with a line of slope one from the first size."""
    figure = new_figure(PAGE, 3.8)
    products = [tasks * classes for tasks, classes in found]
    panels = figure.subplots(2, len(COLUMNS) // 2, sharex=True)
    for panel, (column, title) in zip(panels.flat, COLUMNS.items(), strict=True):
        values = [row[column] for row in found.values()]
        linear = [values[0] * product / products[0] for product in products]
        panel.loglog(products, values, "o", color="0.2", ms=4)
        panel.loglog(products, linear, ":", color=GREY)
        panel.set_ylim(min(values) / 2, max(values) * 20)
        panel.set_title(title, fontsize=SMALL + 1)
        add_grid(panel)
    for panel in panels[-1]:
        panel.set_xlabel("tasks x classes", fontsize=SMALL)
    add_heading(figure, "The cost of a run over its tasks and classes", FACTS)
    save_figure(figure, path)


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
