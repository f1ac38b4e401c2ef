"""LiDER's share of a step, by a clock inside the step (lider_clock.py).

python benchmarks/lider_share.py [--threads N] [--clock cpu]

The forms with λ of all 64 replayed rows, and the spatial one with λ of the first 32 and 16
(`rows_at_most`; row_sampling_error.py says how much noise that adds).
"""

import argparse
from statistics import median, quantiles

from lider_clock import time_steps
from liderlab.analysis.interleaved_timing import CLOCKS
from liderlab.bench.measures import machine
from liderlab.bench.workloads import loop_step, prepared_run

STEPS = {("resnet18", 64, 32): 9, ("resnet18", 16, 32): 41, ("efficientnet-b2", 32, 84): 9}
FORMS = {
    "spatial": {},
    "spatial, 32 rows": {"rows_at_most": 32},
    "spatial, 16 rows": {"rows_at_most": 16},
    "batch": {"estimator": "batch"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, help="CPU threads (torch's default)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: processor time")
    arguments = parser.parse_args()
    print(machine(arguments.threads))
    for size, steps in STEPS.items():
        for form, options in FORMS.items():
            step = loop_step(prepared_run(*size, regularizers={"lider": options}))
            shares = [found.share for found in time_steps(step, steps, CLOCKS[arguments.clock])]
            low, _, high = quantiles(shares, n=4, method="inclusive")
            name = f"{size[0]}, width {size[1]}, {size[2]}x{size[2]}, {form}"
            print(f"{name}: {median(shares):.3f} ({low:.3f}…{high:.3f})", flush=True)


if __name__ == "__main__":
    main()
