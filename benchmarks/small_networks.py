"""Processor time of narrow networks: NaN filling, the layout of tensors, batches of evaluation.

    python benchmarks/small_networks.py --rounds 25

ResNet18 on 32x32, er-ace in batches of 64 + 64, one thread. In each table all columns take turns in
one process, so that other work on the machine slows all of them; ratios are medians over rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch

from liderlab.analysis.interleaved_timing import Action, Ratio, time_in_turns
from liderlab.bench.workloads import bare_step, prepared_run
from liderlab.regularizers.stages import evaluating

WIDTHS = (8, 16)


@contextmanager
def determinism(fill: bool) -> Iterator[None]:
    debugging: Any = torch.utils.deterministic
    debugging.fill_uninitialized_memory = fill
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def steps(width: int) -> dict[str, Action]:
    """A step of the loop with torch's NaN filling and without, and its bare passes."""
    events = iter(prepared_run("resnet18", width, 32).loop)

    def step(fill: bool) -> None:
        with determinism(fill):
            next(events)

    bare = bare_step(prepared_run("resnet18", width, 32))
    return {"without filling": lambda: step(False), "filling": lambda: step(True), "bare": bare}


def layouts(width: int) -> dict[str, Action]:
    """Bare passes of the network in channels_last, and in torch's usual layout."""
    fast, plain = (prepared_run("resnet18", width, 32) for _ in range(2))
    plain.loop.network.to(memory_format=torch.contiguous_format)
    return {"channels last": bare_step(fast), "plain": bare_step(plain)}


def batches(width: int) -> dict[str, Action]:
    """Evaluation of 512 images in batches of different size."""
    network = prepared_run("resnet18", width, 32, batch=8, memory=8).loop.network
    x = torch.rand(512, 3, 32, 32)

    def evaluate(size: int) -> None:
        with evaluating(network), torch.inference_mode():
            for part in x.split(size):
                network(part)

    return {str(size): lambda size=size: evaluate(size) for size in (64, 256, 128, 32)}


TABLES: dict[str, Callable[[int], dict[str, Action]]] = {
    "steps": steps,
    "layouts": layouts,
    "evaluation": batches,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for name, make in TABLES.items():
        for width in WIDTHS:
            times = time_in_turns(make(width), rounds, "cpu")
            first = next(iter(times))
            for column, seconds in times.items():
                ratio = Ratio.of(seconds, times[first])
                print(
                    f"{name:10} width {width:2} {column:15} {1e3 * median(seconds):7.1f} ms, "
                    f"{ratio.value:.2f} ({ratio.low:.2f}…{ratio.high:.2f}) of {first}"
                )


if __name__ == "__main__":
    main()
