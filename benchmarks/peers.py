"""Mammoth, Avalanche and this package at the same job, taking turns.

    python benchmarks/peers.py DATA --mammoth CHECKOUT PYTHON --avalanche PYTHON [--width 64]
        [--steps N] [--rounds 3] [--jobs er-ace …] [--out FILE]

ER-ACE and DER++, with and without LiDER (Avalanche has none), on the first two of CIFAR-100's ten
tasks: one epoch, or --steps steps a task; ResNet18, batches of 64 and 64 replayed, a memory of 500,
SGD at 0.03, one thread; each lab with its own data path, augmentation, memory, network code and
evaluation of all test images so far after each task. Nothing of a peer is imported or changed here:
`peer_probe.py` runs its command and notes when each optimizer step ends. Measured, in processor
seconds unless it says otherwise:

    images_per_second   training images of the stream over the time of the whole process
    first_step          from the command to the end of the first step
    step                the median step of the second task
    evaluation          from task to task, less one step: 1,000 test images, and the end of a task
    memory              the most that the process held, in MB
    accuracy            on the test images of both tasks at the end, in percent
    wall                seconds of the whole process by the wall clock

Every process appends a line to --out; lines there count as measured, so that the command goes on
where it was stopped. Ratios are those of a round's pairs: median and extremes.

CHECKOUT: Mammoth's source; the PYTHONs: interpreters of environments in which Mammoth and Avalanche
run. DATA: Mammoth's `--base_path`, with CIFAR100/cifar-100-python, which Avalanche reads too (here:
`lider data prepare cifar100`). docs/peers.md says what Mammoth needs to start.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
TASKS, ROWS, EPOCH = 2, 64, 5000
JOBS = ["er-ace", "der++", "er-ace + LiDER", "der++ + LiDER"]
QUANTITIES = {"images_per_second": 2, "first_step": 1, "step": 3, "evaluation": 1, "memory": 0}
Row = dict[str, Any]


def probed(python: str, command: list[str], folder: Path) -> tuple[Row, str]:
    """Run a command under the probe: its times, its peak memory and its output."""
    with tempfile.TemporaryDirectory() as place:
        times = Path(place) / "times"
        words = [python, str(HERE / "peer_probe.py"), str(times), str(folder), *command]
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        environment = os.environ | threads | {"PROBE_START": repr(time.time())}
        with tempfile.TemporaryFile() as output:
            start = time.perf_counter()
            process = subprocess.Popen(
                words, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - start
            output.seek(0)
            said = output.read().decode(errors="replace")
        if status:
            sys.exit(f"{' '.join(command)} failed:\n{said[-3000:]}")
        ends = [json.loads(line) for line in times.read_text().splitlines()]
    spent = usage.ru_utime + usage.ru_stime
    return times_of(ends, spent) | {"memory": usage.ru_maxrss / 1024, "wall": wall}, said


def times_of(ends: list[list[float]], spent: float) -> Row:
    """The quantities above. ends: of each step, by the wall clock and the processor's."""
    half = len(ends) // TASKS
    steps = [b[1] - a[1] for a, b in zip(ends[half:], ends[half + 1 :], strict=False)]
    step = median(steps)
    return {
        "steps": len(ends),
        "images_per_second": min(len(ends) * ROWS, TASKS * EPOCH) / spent,
        "first_step": ends[0][1],
        "first_step_wall": ends[0][0],
        "step": step,
        "evaluation": ends[half][1] - ends[half - 1][1] - step,
    }


def mammoth(options: argparse.Namespace, job: str) -> Row:
    method, _, lider = job.partition(" + ")
    checkout, python = options.mammoth
    arguments = {
        "model": {"er-ace": "er_ace", "der++": "derpp"}[method] + ("_lider" if lider else ""),
        "dataset": "seq-cifar100",
        "backbone": "resnet18",
        "num_filters": options.width,
        "buffer_size": 500,
        "lr": 0.03,
        "batch_size": ROWS,
        "minibatch_size": ROWS,
        "n_epochs": 1,
        "stop_after": TASKS,
        "num_workers": 0,
        "base_path": f"{options.data.resolve()}/",
    }
    if options.steps:
        del arguments["n_epochs"]
        arguments |= {"fitting_mode": "iters", "n_iters": options.steps}
    if method == "der++":
        arguments |= {"alpha": 0.1, "beta": 0.5}
    if lider:
        arguments |= {"alpha_lip_lambda": 0.3, "beta_lip_lambda": 0.1}
    words = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    row, said = probed(python, ["main.py", *words], Path(checkout))
    found = re.findall(r"Accuracy for 2 task\(s\):.*?\[Class-IL\]: *([\d.]+)", said, re.DOTALL)
    return row | {"accuracy": float(found[-1])}


def avalanche(options: argparse.Namespace, job: str) -> Row:
    steps = ["--steps", str(options.steps)] if options.steps else []
    words = [str(HERE / "peer_avalanche.py"), job, str((options.data / "CIFAR100").resolve())]
    row, said = probed(options.avalanche, [*words, "--width", str(options.width), *steps], HERE)
    return row | {"accuracy": float(said.split()[-1])}


def here(options: argparse.Namespace, job: str) -> Row:
    method, _, lider = job.partition(" + ")
    fields = {
        "backbone.width": options.width,
        "training.batch_size": ROWS,
        "training.replay_size": ROWS,
        "training.epochs": 1,
        "training.milestones": [],
        "training.lr": 0.03,
        "threads": 1,
    }
    if options.steps:
        fields["training.budget.steps"] = TASKS * options.steps
    words = [word for name, value in fields.items() for word in ("--set", f"{name}={value}")]
    words += ["--method", method, "--buffer", "500", "--backbone", "resnet18"]
    words += ["--evaluate", "seen", *(["--lider"] if lider else [])]  # as the peers do
    words += ["--import", str(HERE / "peer_stream.py"), "--benchmark", "first-tasks"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = ["-m", "liderlab", "run", *words, "--out", str(out)]
        row, _ = probed(sys.executable, command, HERE)
        result = json.loads((out / "result.json").read_text())
    return row | {"accuracy": result["class_incremental"]["faa"]}


LABS: dict[str, Callable[[argparse.Namespace, str], Row]] = {
    "mammoth": mammoth,
    "avalanche": avalanche,
    "here": here,
}


def plan(options: argparse.Namespace) -> list[Row]:
    """Every process, in order: in each round, the labs of a job one after the other."""
    given = [lab for lab in LABS if lab == "here" or getattr(options, lab)]
    return [
        {"job": job, "lab": lab, "round": number, "width": options.width, "limit": options.steps}
        for number in range(options.rounds)
        for job in options.jobs
        for lab in (given if number % 2 else given[::-1])
        if not (lab == "avalanche" and "LiDER" in job)
    ]


def ratios(rows: list[Row], job: str, lab: str, quantity: str) -> list[float]:
    """Those of the lab's process to ours, of each round, sorted."""
    both = [
        {row["round"]: row[quantity] for row in rows if (row["job"], row["lab"]) == (job, name)}
        for name in (lab, "here")
    ]
    return sorted(both[0][number] / both[1][number] for number in both[0].keys() & both[1].keys())


def table(rows: list[Row]) -> str:
    """A Markdown table: each lab's medians, and the ratios of the peers' to ours."""
    lines = ["| job | lab | " + " | ".join(QUANTITIES) + " | accuracy |"]
    lines.append("|---|---|" + "---:|" * (len(QUANTITIES) + 1))
    for job, lab in dict.fromkeys((row["job"], row["lab"]) for row in rows):
        own = [row for row in rows if (row["job"], row["lab"]) == (job, lab)]
        cells = [
            f"{median(r[name] for r in own):.{digits}f}" for name, digits in QUANTITIES.items()
        ]
        lines.append(f"| {job} | {lab} | {' | '.join(cells)} | {own[-1]['accuracy']:.1f} |")
        if lab == "here":
            continue
        cells = []
        for name in QUANTITIES:
            found = ratios(rows, job, lab, name)
            spread = f"{median(found):.2f} ({found[0]:.2f}…{found[-1]:.2f})" if found else ""
            cells.append(spread)
        lines.append(f"| | {lab} / here | {' | '.join(cells)} | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--mammoth", nargs=2, metavar=("CHECKOUT", "PYTHON"))
    parser.add_argument("--avalanche", metavar="PYTHON")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--out", type=Path, default=Path("runs/peers.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    rows = [json.loads(line) for line in lines]
    planned = plan(options)
    for process in planned:
        if not any(process.items() <= row.items() for row in rows):
            rows.append(process | LABS[process["lab"]](options, process["job"]))
            with options.out.open("a") as file:
                print(json.dumps(rows[-1]), file=file)
            print(json.dumps(rows[-1]), flush=True)
    print(table([row for row in rows if any(p.items() <= row.items() for p in planned)]))


if __name__ == "__main__":
    main()
