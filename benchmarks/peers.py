"""Mammoth and this package at the same job, taking turns: seconds and memory of whole processes.

    python benchmarks/peers.py CHECKOUT PYTHON DATA [--width 64] [--rounds 3]

ER-ACE, alone and with LiDER, on two tasks of CIFAR-100, ResNet18, batches of 64 and 64 replayed, a
memory of 500, one thread, each with its own data path and evaluation. Both commands run with few
steps per task and with more: the difference is the time of a step, all else is the time to start,
load data, evaluate and end. Nothing of Mammoth is imported here. The runs are far too short for an
accuracy, and Mammoth's tasks have ten classes, ours fifty, which changes no time.

CHECKOUT: Mammoth's source. PYTHON: the interpreter of the environment in which it runs. DATA: its
`--base_path`, with CIFAR100/cifar-100-python (here: `lider data prepare cifar100`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

STEPS = (2, 8)  # per task
TASKS, ROWS = 2, 64
JOBS = {"er-ace": ("er_ace", []), "er-ace + LiDER": ("er_ace_lider", ["--lider"])}
LIDER = ["--alpha_lip_lambda", "0.3", "--beta_lip_lambda", "0.1"]


def run(command: list[str], folder: Path | None = None) -> tuple[float, float, float]:
    """Seconds by the wall clock and of the processor, and peak memory in MB, of a process."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        if status:
            output.seek(0)
            sys.exit(output.read().decode(errors="replace")[-2000:])
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def mammoth(options: argparse.Namespace, job: str, steps: int) -> tuple[float, float, float]:
    model, lider = JOBS[job]
    arguments = {
        "model": model,
        "dataset": "seq-cifar100",
        "backbone": "resnet18",
        "num_filters": options.width,
        "buffer_size": 500,
        "lr": 0.03,
        "batch_size": ROWS,
        "minibatch_size": ROWS,
        "fitting_mode": "iters",
        "n_iters": steps,
        "stop_after": TASKS,
        "debug_mode": 1,  # at most seven batches of each task are tested
        "num_workers": 0,
        "base_path": f"{options.data}/",
    }
    words = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    extra = LIDER if lider else []
    return run([str(options.python), "main.py", *words, *extra], options.checkout)


def here(options: argparse.Namespace, job: str, steps: int) -> tuple[float, float, float]:
    fields = {
        "benchmark.tasks": TASKS,
        "benchmark.train_per_class": -(-steps * ROWS // 50),
        "benchmark.test_per_class": 9,  # 450 of each task; Mammoth tests 448
        "backbone.width": options.width,
        "training.batch_size": ROWS,
        "training.replay_size": ROWS,
        "training.budget.steps": TASKS * steps,
        "training.lr": 0.03,
        "threads": 1,
    }
    assigned = [word for name, value in fields.items() for word in ("--set", f"{name}={value}")]
    method = ["--method", "er-ace", "--buffer", "500", "--backbone", "resnet18", *JOBS[job][1]]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "liderlab", "run", "--benchmark", "split-cifar100"]
        return run([*command, *method, *assigned, "--out", f"{folder}/run"])


LABS: dict[str, Callable[[argparse.Namespace, str, int], tuple[float, float, float]]] = {
    "mammoth": mammoth,
    "here": here,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("python", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for job in JOBS:
        found: dict[str, list[dict[str, float]]] = {lab: [] for lab in LABS}
        for number in range(options.rounds):
            for lab, measure in list(LABS.items())[:: 1 if number % 2 else -1]:
                few, many = (measure(options, job, steps) for steps in STEPS)
                step = (many[1] - few[1]) / (TASKS * (STEPS[1] - STEPS[0]))
                rest = few[1] - TASKS * STEPS[0] * step
                row = {"step": step, "rest": rest, "memory": many[2], "wall": many[0]}
                found[lab].append(row)
                print(json.dumps({"job": job, "lab": lab, **row}), flush=True)
        for quantity in ("step", "rest", "memory"):
            pairs = zip(found["mammoth"], found["here"], strict=True)
            ratios = sorted(theirs[quantity] / ours[quantity] for theirs, ours in pairs)
            spread = f"{ratios[0]:.2f}…{ratios[-1]:.2f}"
            print(f"{job}, {quantity}: mammoth / here {median(ratios):.2f} ({spread})", flush=True)


if __name__ == "__main__":
    main()
