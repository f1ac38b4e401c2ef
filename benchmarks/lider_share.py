"""LiDER's share of a step, by a clock inside the step (lider_clock.py).

python benchmarks/lider_share.py [--threads N]
"""

import argparse
from statistics import median, quantiles

from lider_clock import time_steps
from liderlab.bench.measures import machine
from liderlab.bench.workloads import loop_step, prepared_run

STEPS = {("resnet18", 64, 32): 9, ("resnet18", 16, 32): 41, ("efficientnet-b2", 32, 84): 9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, help="CPU threads (torch's default)")
    print(machine(parser.parse_args().threads))
    for size, steps in STEPS.items():
        for estimator in ("spatial", "batch"):
            step = loop_step(prepared_run(*size, regularizers={"lider": {"estimator": estimator}}))
            shares = [found.share for found in time_steps(step, steps)]
            low, _, high = quantiles(shares, n=4, method="inclusive")
            name = f"{size[0]}, width {size[1]}, {size[2]}x{size[2]}, {estimator}"
            print(f"{name}: {median(shares):.3f} ({low:.3f}…{high:.3f})", flush=True)


if __name__ == "__main__":
    main()
