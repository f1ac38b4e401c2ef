"""Time and space of a memory: prints the tables of docs/memory.md.

    python benchmarks/memory_cost.py                    # insert and draw over sizes, RAM
    python benchmarks/memory_cost.py --disk FOLDER      # images of 224x224 in a file there

Medians of 300, one thread, each case in its own process. Labels of 100 classes are drawn uniformly
and offered in batches of 64 to a memory that has seen twice as many samples as it has slots, so
that half of them enter at every size (none into greedy-balanced).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

from liderlab.memory import POLICIES, Memory

SIZES = (500, 5_000, 50_000, 500_000, 1_000_000)
FROM_STREAM = ("reservoir", "class-balanced", "greedy-balanced")
BATCH, CLASSES = 64, 100


def offered(shape: tuple[int, ...], n: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    y = torch.randint(CLASSES, (n,), generator=generator)
    x = torch.zeros(1, *shape, dtype=torch.uint8).expand(n, *shape)
    return {"x": x, "y": y, "task": y // 10}


def full(policy: str, size: int, generator: torch.Generator) -> Memory:
    memory = Memory(size, (3, 32, 32), {}, POLICIES.load(policy)())
    part = min(size, 1000)
    for _ in range(2 * size // part):
        memory.offer(generator, **offered((3, 32, 32), part, generator))
    return memory


def milliseconds(
    action: Callable[[], object], times: int, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Milliseconds of each call; in processor time, which other processes disturb least."""
    taken = []
    for _ in range(times):
        start = clock()
        action()
        taken.append(1000 * (clock() - start))
    return taken


def cost(policy: str, size: int) -> tuple[float, float]:
    """Milliseconds of one insert and one draw of 64 images."""
    generator = torch.Generator().manual_seed(0)
    rows = {n: v.clone() for n, v in offered((3, 32, 32), BATCH, generator).items()}
    few = min(300, max(1, size // (10 * BATCH)))  # later, fewer samples enter
    inserts: list[float] = []
    while len(inserts) < 300:
        memory = full(policy, size, generator)
        inserts += milliseconds(lambda m=memory: m.offer(generator, **rows), few)  # type: ignore[misc]
    draws = milliseconds(lambda: memory.rows(memory.draw(BATCH, generator)), 300)
    return median(inserts), median(draws)


def ram(policy: str, size: int) -> tuple[float, float]:
    """MB of the stored images and columns, and by how many MB the process grew at its peak."""
    before = process_size("VmRSS")
    memory = full(policy, size, torch.Generator().manual_seed(0))
    after = process_size("VmHWM")
    stored = sum(
        column.nbytes for column in memory.data.values() if isinstance(column, torch.Tensor)
    )
    return stored / 1e6, (after - before) / 1e6


def process_size(field: str) -> int:
    """Bytes of RAM, now (VmRSS) or at the peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def in_own_process(measure: str, policy: str, size: int) -> list[float]:
    command = [sys.executable, __file__, "--one", measure, policy, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(value) for value in done.stdout.split()]


def tables() -> None:
    print("| slots |", " | ".join(f"{p}: insert | draw" for p in FROM_STREAM), "|")
    print("|---:|" + "---:|" * 2 * len(FROM_STREAM))
    for size in SIZES:
        found = [value for p in FROM_STREAM for value in in_own_process("cost", p, size)]
        print(f"| {size:,} |", " | ".join(f"{value:.2f}" for value in found), "|", flush=True)
    print(
        "\n| 1,000,000 slots | stored (MB) | process grew by (MB) | ratio |\n|---|---:|---:|---:|"
    )
    for policy in FROM_STREAM:
        stored, grown = in_own_process("ram", policy, 1_000_000)
        print(f"| {policy} | {stored:,.0f} | {grown:,.0f} | {grown / stored:.3f} |", flush=True)


def disk(folder: Path, size: int, image: int) -> None:
    """Time a memory on disk: inserts, draws, checkpoints; and its RAM."""
    shape, generator = (3, image, image), torch.Generator().manual_seed(0)
    memory = Memory(
        size, shape, {}, POLICIES.load("reservoir")(), storage="disk", folder=folder / "memory"
    )
    x = torch.randint(256, (BATCH, *shape), generator=generator, dtype=torch.uint8)
    y = torch.arange(BATCH)
    before = process_size("VmRSS")
    start = time.perf_counter()
    for _ in range(size // BATCH + 1):
        memory.offer(generator, x=x, y=y, task=y)
    filling = time.perf_counter() - start
    wall = time.perf_counter
    first = milliseconds(memory.state_dict, 1, wall)[0]
    memory.checkpointed(1, 1)
    insert = median(milliseconds(lambda: memory.offer(generator, x=x, y=y, task=y), 50, wall))
    draw = median(milliseconds(lambda: memory.rows(memory.draw(BATCH, generator)), 50, wall))
    again = milliseconds(memory.state_dict, 1, wall)[0]
    grown = (process_size("VmHWM") - before) / 1e6
    file = folder / "memory" / "x.rows"
    print(f"{size:,} images of {image}x{image}: {file.stat().st_blocks * 512 / 1e9:.1f} GB on disk")
    print(
        f"filled in {filling:.1f} s; then, per {BATCH}: insert {insert:.1f} ms, draw {draw:.1f} ms"
    )
    print(f"state for a checkpoint: {first:.0f} ms after filling, {again:.0f} ms after 50 inserts")
    print(f"the process grew by {grown:.0f} MB at most")
    file.unlink()


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--disk", type=Path)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--one", nargs=3)
    arguments = parser.parse_args()
    if arguments.one:
        measure, policy, size = arguments.one
        print(*(cost if measure == "cost" else ram)(policy, int(size)))
    elif arguments.disk:
        disk(arguments.disk, arguments.images, 224)
    else:
        tables()


if __name__ == "__main__":
    main()
