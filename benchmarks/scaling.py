"""How the cost of LiDER and of the loop grows. Draws docs/scaling.png and prints its table.

    python benchmarks/scaling.py

One er-ace step of a ResNet18, each time varying one thing of: width 16, 32x32 pixels, batch
32 + 32, all five stages, a memory of 500. Processor time of one thread, so that neighbours on the
machine disturb little.
"""

import sys
from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

from liderlab.bench.contestants import prepared, product_step
from liderlab.bench.measures import machine
from liderlab.bench.race import Ratio, race

ROUNDS = 5
STAGES = ["stem", "layer1", "layer2", "layer3", "layer4"]
BASE = {"backbone": "resnet18", "width": 16, "side": 32, "batch": 32, "memory": 500}
SWEEPS = {
    "batch": [8, 16, 32, 64],
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


def measure(what: str, value: int) -> tuple[dict[str, float], dict[str, Ratio]]:
    """Milliseconds of a step without LiDER and with each form, and their ratios to the first."""
    size = BASE if what == "stages" else BASE | {what: value}
    stages = STAGES[: value if what == "stages" else len(STAGES)]
    forms = {"without": None, "spatial": {"estimator": "spatial"}, "batch": {"estimator": "batch"}}
    contestants = {
        name: product_step(prepared(**size, lider=form and {**form, "stages": stages}))
        for name, form in forms.items()
    }
    times = race(contestants, ROUNDS, "cpu")
    milliseconds = {name: 1000 * median(seconds) for name, seconds in times.items()}
    ratios = {name: Ratio.of(times[name], times["without"]) for name in ("spatial", "batch")}
    return milliseconds, ratios


def main(path: Path) -> None:
    print(machine(threads=1), "\n")
    print("| | step without, ms | spatial | batch |\n|---|---:|---:|---:|")
    figure, axes = plt.subplots(2, len(SWEEPS), figsize=(15, 5.2), sharey="row", sharex="col")
    for column, (what, values) in zip(axes.T, SWEEPS.items(), strict=True):
        found = [measure(what, value) for value in values]
        for value, (milliseconds, ratios) in zip(values, found, strict=True):
            cells = [f"{r.value:.3f} ({r.low:.3f}…{r.high:.3f})" for r in ratios.values()]
            print(f"| {what} {value:,} | {milliseconds['without']:.0f} |", " | ".join(cells), "|")
        draw(column, what, values, found)
    axes[0, 0].set_ylabel("step, ms of processor time")
    axes[1, 0].set_ylabel("with LiDER / without")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"\nwrote {path}", file=sys.stderr)


def draw(column, what, values, found) -> None:
    above, below = column
    for name, colour in (("without", "0.55"), ("spatial", "tab:blue"), ("batch", "tab:orange")):
        times = [milliseconds[name] for milliseconds, _ in found]
        above.plot(values, times, "o-", color=colour, label=name, markersize=4)
        if name != "without":
            ratios = [by_name[name] for _, by_name in found]
            below.plot(values, [r.value for r in ratios], "o-", color=colour, markersize=4)
            low, high = [r.low for r in ratios], [r.high for r in ratios]
            below.fill_between(values, low, high, color=colour, alpha=0.2, linewidth=0)
    below.axhline(1, color="0.55", linewidth=1)
    below.set_xlabel(LABELS[what])
    above.set_yscale("log")
    if what == "memory":
        below.set_xscale("log")
    else:
        below.set_xticks(values)
    for axis in column:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)


if __name__ == "__main__":
    torch.manual_seed(0)
    main(Path(__file__).parent.parent / "docs" / "scaling.png")
