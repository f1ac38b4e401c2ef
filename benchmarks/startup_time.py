"""Seconds until `lider` answers.

    python benchmarks/startup_time.py

Times `lider --help`, and `lider run` up to the first training step on CIFAR-100 with the paper's
network, with LiDER and without; first run `lider data prepare cifar100`. Medians of several starts
after one that is not counted, by the wall clock and in processor time.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

RUNS = {
    "er-ace, ResNet18 of width 64": ["--preset", "cifar100-500-er-ace"],
    "er-ace + LiDER, ResNet18 of width 64": ["--preset", "cifar100-500-er-ace-lider"],
}
LIDER = [sys.executable, "-m", "liderlab"]


def help_page() -> tuple[float, float]:
    """Seconds until the help page is printed, by the wall clock and in processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([*LIDER, "--help"], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_step(options: list[str]) -> tuple[float, float]:
    """The same, until metrics.jsonl holds the first step."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [*LIDER, "run", *options, "--out", str(out), "--set", "log_every=1"]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log = out / "metrics.jsonl"
        while not (log.exists() and log.stat().st_size) and process.poll() is None:
            time.sleep(0.01)
        seconds, busy = time.perf_counter() - start, _processor_seconds(process.pid)
        assert process.poll() is None, "the run ended early: lider data prepare cifar100"
        process.send_signal(signal.SIGKILL)
        process.wait()
        return seconds, busy


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=5, help="starts that are counted (5)")
    starts = parser.parse_args().starts
    measures = {"lider --help": help_page}
    measures |= {name: partial(first_step, options) for name, options in RUNS.items()}
    for name, measure in measures.items():
        found = [measure() for _ in range(starts + 1)][1:]
        clock, busy = (median(values) for values in zip(*found, strict=True))
        print(f"{name}: {clock:.2f} s wall clock, {busy:.2f} s processor time", flush=True)


if __name__ == "__main__":
    main()
