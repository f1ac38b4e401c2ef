"""What LiDER itself takes of a step, by the clock within the step.

    python benchmarks/share.py

Where the times of whole steps scatter more than LiDER costs, comparing steps with and without it
needs hundreds of rounds. Here a step is compared with itself: the clock runs inside LiDER (copies
of the maps, estimates, their gradients) and around the whole step, and whatever slows the machine
slows both. Left out is what the engine adds up where gradients meet (one addition per map).
"""

import time
from collections.abc import Callable
from statistics import median, quantiles

import torch

from liderlab.bench.contestants import prepared, product_step
from liderlab.bench.measures import machine
from liderlab.functional.coupling import BatchCoupling, SpatialCoupling
from liderlab.regularizers.lider import LiDER
from liderlab.regularizers.recorder import Recorder

STEPS = {("resnet18", 64, 32): 5, ("resnet18", 16, 32): 31, ("efficientnet-b2", 32, 84): 9}
inside = 0.0  # seconds within LiDER, so far


def clocked(function: Callable) -> Callable:
    def timed(*args, **kwargs):
        global inside
        start = time.perf_counter()
        result = function(*args, **kwargs)
        inside += time.perf_counter() - start
        return result

    return timed


def shares(size: tuple[str, int, int], estimator: str, steps: int) -> list[float]:
    """LiDER's time over the rest of the step, for each step."""
    step = product_step(prepared(*size, lider={"estimator": estimator}))
    step()
    found = []
    for _ in range(steps):
        start, before = time.perf_counter(), inside
        step()
        whole, own = time.perf_counter() - start, inside - before
        found.append(own / (whole - own))
    return found


def main() -> None:
    LiDER._take = clocked(LiDER._take)
    LiDER._weighted_terms = clocked(LiDER._weighted_terms)
    Recorder.record = clocked(Recorder.record)
    for coupling in (SpatialCoupling, BatchCoupling):
        coupling.backward = staticmethod(clocked(coupling.backward))
    for threads in (1, torch.get_num_threads()):
        print(machine(threads))
        for size, steps in STEPS.items():
            for estimator in ("spatial", "batch"):
                found = shares(size, estimator, steps)
                low, _, high = quantiles(found, n=4, method="inclusive")
                name = f"{size[0]} width {size[1]} {size[2]}x{size[2]}"
                print(f"{name} {estimator}: {median(found):.3f} ({low:.3f}…{high:.3f})", flush=True)


if __name__ == "__main__":
    main()
