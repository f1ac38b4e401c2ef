"""How the time of a step and LiDER's share of it grow: draws docs/scaling.png, prints its table.

    python benchmarks/lider_scaling.py

One er-ace step of a ResNet18 with width 16, 32x32 pixels, batch 32 + 32, all five stages and a
memory of 500; one of these varies at a time. One thread; LiDER's part by lider_clock.py.
"""

import sys
from pathlib import Path
from statistics import median, quantiles

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from lider_clock import StepTime, time_steps
from liderlab.bench.measures import machine
from liderlab.bench.workloads import loop_step, prepared_run

STEPS = 9
STAGES = ["stem", "layer1", "layer2", "layer3", "layer4"]
BASE = {"backbone": "resnet18", "width": 16, "side": 32, "batch": 32, "memory": 500}
SWEEPS = {
    "batch": [8, 16, 32, 64, 128],
    "width": [8, 16, 32, 64],
    "side": [16, 32, 48, 64],
    "stages": [1, 2, 3, 4, 5],
    "memory": [200, 2_000, 20_000, 200_000],
}
LABELS = {
    "batch": "batch (stream = replay)",
    "width": "network width",
    "side": "image side, pixels",
    "stages": "stages watched",
    "memory": "memory, slots",
}
FORMS = {"spatial": ("tab:blue", "o-"), "batch": ("tab:orange", "s--")}


def measure(varied: str, value: int) -> dict[str, list[StepTime]]:
    size = BASE if varied == "stages" else BASE | {varied: value}
    stages = STAGES[: value if varied == "stages" else len(STAGES)]
    return {
        form: time_steps(
            loop_step(
                prepared_run(**size, regularizers={"lider": {"estimator": form, "stages": stages}})
            ),
            STEPS,
        )
        for form in FORMS
    }


def middle(values: list[float]) -> tuple[float, float, float]:
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, median(values), high


def main(path: Path) -> None:
    print(machine(threads=1), "\n")
    print("| | the rest, ms | LiDER, spatial | LiDER, batch |\n|---|---:|---:|---:|", flush=True)
    figure, axes = plt.subplots(2, len(SWEEPS), figsize=(15, 5.2), sharey="row", sharex="col")
    for column, (varied, values) in zip(axes.T, SWEEPS.items(), strict=True):
        found = []
        for value in values:
            found.append(measure(varied, value))
            rest = median(step.rest for steps in found[-1].values() for step in steps)
            shares = [middle([100 * s.share for s in steps]) for steps in found[-1].values()]
            cells = " | ".join(f"{mid:.1f} % ({low:.1f}…{high:.1f})" for low, mid, high in shares)
            print(f"| {varied} {value:,} | {1000 * rest:.0f} | {cells} |", flush=True)
        draw(column, varied, values, found)
    axes[0, 0].set_ylabel("step without LiDER's part, ms")
    axes[1, 0].set_ylabel("LiDER's part, % of that")
    axes[1, 0].legend(frameon=False)
    axes[1, 0].set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"\nwrote {path}", file=sys.stderr)


def draw(column, varied, values, found) -> None:
    above, below = column
    rests = [median(step.rest for steps in forms.values() for step in steps) for forms in found]
    above.plot(values, [1000 * rest for rest in rests], "o-", color="0.4", markersize=4)
    for form, (colour, line) in FORMS.items():
        lows, middles, highs = zip(
            *(middle([100 * s.share for s in forms[form]]) for forms in found), strict=True
        )
        below.plot(values, middles, line, color=colour, label=form, markersize=4)
        below.fill_between(values, lows, highs, color=colour, alpha=0.2, linewidth=0)
    below.set_xlabel(LABELS[varied])
    above.set_yscale("log")
    if varied == "memory":
        below.set_xscale("log")
    else:
        below.set_xticks(values)
    for axis in column:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)


if __name__ == "__main__":
    main(Path(__file__).parent.parent / "docs" / "scaling.png")
