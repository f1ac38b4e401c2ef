"""How the time of a step and LiDER's share of it grow: draws docs/scaling.png, prints its table.

    python benchmarks/lider_scaling.py           # measures, writes lider_scaling.json, draws
    python benchmarks/lider_scaling.py --draw    # draws lider_scaling.json again

One er-ace step of a ResNet18 with width 16, 32x32 pixels, batch 32 + 32, all five stages and a
memory of 500; one of these varies at a time. One thread; LiDER's part by lider_clock.py.
"""

import json
import sys
from pathlib import Path
from statistics import median, quantiles

from lider_clock import time_steps
from liderlab.analysis.figure_style import (
    AXES,
    NORMAL,
    PAGE,
    SMALL,
    add_grid,
    add_heading,
    legend_below,
    new_figure,
    plot_line,
    save_figure,
)
from liderlab.bench.measures import machine
from liderlab.bench.workloads import loop_step, prepared_run

HERE = Path(__file__).parent
RECORD, FIGURE = HERE / "lider_scaling.json", HERE.parent / "docs" / "scaling.png"
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
    "batch": "batch size",
    "width": "network width",
    "side": "image side, pixels",
    "stages": "stages watched",
    "memory": "memory, slots",
}
FORMS = ("spatial", "batch")
FACTS = (
    "random images, 32x32",
    "er-ace on ResNet18 of width 16, batch 32 + 32, memory 500, five stages, one of them varied",
    "one thread",
    f"{STEPS} steps each, bands: their middle half",
)


def measure(varied: str, value: int) -> dict:
    """The milliseconds of the rest of a step, and the quartiles of LiDER's share in percent."""
    size = BASE if varied == "stages" else BASE | {varied: value}
    stages = STAGES[: value if varied == "stages" else len(STAGES)]
    found = {
        form: time_steps(
            loop_step(
                prepared_run(**size, regularizers={"lider": {"estimator": form, "stages": stages}})
            ),
            STEPS,
        )
        for form in FORMS
    }
    rest = median(step.rest for steps in found.values() for step in steps)
    shares = {form: quartiles([100 * s.share for s in steps]) for form, steps in found.items()}
    return {"value": value, "rest_ms": round(1000 * rest, 1)} | shares


def quartiles(values: list[float]) -> list[float]:
    return [round(value, 2) for value in quantiles(values, n=4, method="inclusive")]


def measure_all() -> dict[str, list[dict]]:
    print(machine(threads=1), "\n")
    print("| | the rest, ms | LiDER, spatial | LiDER, batch |\n|---|---:|---:|---:|", flush=True)
    record: dict[str, list[dict]] = {}
    for varied, values in SWEEPS.items():
        for value in values:
            point = measure(varied, value)
            record.setdefault(varied, []).append(point)
            shares = (point[form] for form in FORMS)
            cells = " | ".join(f"{mid:.1f} % ({low:.1f}…{high:.1f})" for low, mid, high in shares)
            print(f"| {varied} {value:,} | {point['rest_ms']:.0f} | {cells} |", flush=True)
    return record


def draw(record: dict[str, list[dict]], path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context(AXES | {"axes.labelsize": SMALL}):
        figure = new_figure(PAGE, 4.0)
        panels = figure.subplots(2, len(record), sharey="row", sharex="col")
    for (above, below), (varied, points) in zip(panels.T, record.items(), strict=True):
        x = [point["value"] for point in points]
        rests = [point["rest_ms"] for point in points]
        above.plot(x, rests, "o-", color="0.4", ms=4)
        for number, form in enumerate(FORMS):
            low, middle, high = zip(*(point[form] for point in points), strict=True)
            plot_line(below, number, x, middle, f"LiDER, {form} form", ms=4)
            colour = below.lines[-1].get_color()
            below.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        above.set_yscale("log")
        below.set_xlabel(LABELS[varied])
        if varied == "memory":
            below.set_xscale("log")
        else:
            below.set_xscale("linear" if varied == "stages" else "log")
            below.set_xticks(x, [str(value) for value in x])
            below.minorticks_off()
        for panel in (above, below):
            add_grid(panel)
    panels[0, 0].set_ylabel("step without LiDER (ms)", fontsize=NORMAL)
    panels[1, 0].set_ylabel("LiDER, % of that", fontsize=NORMAL)
    panels[1, 0].set_ylim(bottom=0)
    legend_below(figure)
    add_heading(figure, "The time of a step, and LiDER's share of it", FACTS)
    save_figure(figure, path)
    print(f"wrote {path}", file=sys.stderr)


if __name__ == "__main__":
    if "--draw" not in sys.argv[1:]:
        RECORD.write_text(json.dumps(measure_all(), indent=1) + "\n")
    draw(json.loads(RECORD.read_text()), FIGURE)
