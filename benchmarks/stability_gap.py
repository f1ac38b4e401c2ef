"""Does LiDER narrow the stability gap? Accuracy on past tasks every five steps, with and without.

    LIDER_DATA=… python benchmarks/stability_gap.py --out runs/gap     # resumes unfinished runs

Three tasks of five classes, the first 15 of CIFAR-100 with 320 images each (50 whole batches of a
task: a short last one shakes BatchNorm's statistics and would look like a gap); the network
convnet-small of width 16, two epochs, 100 samples in memory; ER-ACE and DER++ alone and with LiDER,
three seeds. LiDER has 12.5 times the paper's weights (for CIFAR-100 with 500 samples), as in
docs/ledger.md for short training: the paper's own weights, made for 50 epochs, hardly act in two.
Draws docs/stability-gap.png and prints the table of docs/evaluation.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from liderlab.analysis.figure_style import (
    GREY,
    add_grid,
    legend_below,
    new_figure,
    plot_line,
    small_png,
)
from liderlab.config.merging import make_config
from liderlab.functional.statistics import paired_difference, summarise
from liderlab.registry import Entry
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.streams import BENCHMARKS
from liderlab.streams.datasets.cifar import split_cifar100
from liderlab.streams.splitting import SplitStream

TASKS, SEEDS = 3, (0, 1, 2)
FACTOR = 12.5
LIDER = {"er-ace": {"alpha": 0.1, "beta": 0.3}, "der++": {"alpha": 0.3, "beta": 0.1}}
OPTIONS: dict[str, dict[str, Any]] = {"er-ace": {}, "der++": {"alpha": 0.1, "beta": 0.5}}
METRICS = {"min_acc": "min-ACC", "wc_acc": "WC-ACC", "aaa": "AAA", "faa": "FAA"}


def first_classes(tasks: int, class_order: Sequence[int] | None = None) -> SplitStream:
    """The first classes of CIFAR-100, in tasks of five."""
    stream = split_cifar100(20, class_order)
    return replace(stream, tasks=stream.tasks[:tasks], names=stream.names[: 5 * tasks])


BENCHMARKS["cifar100-first"] = Entry(first_classes, "the first classes of CIFAR-100")


def train(method: str, lider: bool, seed: int, out: Path) -> RunFolder:
    """The finished run: resumed, if it was interrupted."""
    folder = out / f"{method}{'-lider' if lider else ''}-{seed}"
    weights = {name: FACTOR * weight for name, weight in LIDER[method].items()}
    config = make_config(
        {
            "benchmark": {
                "name": "cifar100-first",
                "tasks": TASKS,
                "train_per_class": 320,
            },
            "method": {"name": method, **OPTIONS[method]},
            "regularizers": {"lider": weights} if lider else {},
            "backbone": {"name": "convnet-small", "width": 16},
            "memory": {"size": 100},
            "training": {"epochs": 2, "batch_size": 32, "lr": 0.1},
            "evaluate": "every:5:125",
            "seed": seed,
            "threads": 1,
        }
    )
    result = run(config, folder, existing="resume")
    found = result["class_incremental"]
    print(folder.name, *(f"{found[m]:.2f}" for m in METRICS), result["seconds_cpu"], flush=True)
    return RunFolder(folder)


def curves(folder: RunFolder) -> tuple[list[int], list[float], list[float]]:
    """Steps, accuracy on the first task, and mean accuracy on the tasks before the current one."""
    lines = [line.get("anytime", line) for line in folder.metrics() if line["kind"] != "step"]
    lines = [line for line in lines if line["task"] > 0]
    first = [line["class_incremental"][0] for line in lines]
    past = [float(np.mean(line["class_incremental"][:-1])) for line in lines]
    return [line["step"] for line in lines], first, past


def draw(runs: dict[tuple[str, bool], list[RunFolder]], path: Path) -> None:
    figure = new_figure(9, 5.5)
    panels = figure.subplots(2, len(LIDER), sharex=True, sharey="row", squeeze=False)
    for column, method in enumerate(LIDER):
        for lider in (False, True):
            found = [curves(folder) for folder in runs[method, lider]]
            label = f"with LiDER, {FACTOR:g} times the paper's weights" if lider else "alone"
            for row in (0, 1):
                values = np.array([curve[row + 1] for curve in found])
                spread = values.std(0, ddof=1)
                plot_line(
                    panels[row][column],
                    int(lider),
                    found[0][0],
                    values.mean(0),
                    label,
                    spread=spread,
                    marker=False,
                )
        ends = [line["step"] for line in runs[method, False][0].metrics() if line["kind"] == "task"]
        for axes in panels[:, column]:
            add_grid(axes, "y")
            for end in ends[:-1]:
                axes.axvline(end, color=GREY, lw=0.8, ls=":")
        panels[0][column].set_title(method)
        panels[1][column].set_xlabel("step")
    panels[0][0].set_ylabel("accuracy on task 1 (%)")
    panels[1][0].set_ylabel("mean accuracy on\nall past tasks (%)")
    legend_below(figure)
    path.write_bytes(small_png(figure))


def table(runs: dict[tuple[str, bool], list[RunFolder]]) -> list[str]:
    lines = ["| | min-ACC | WC-ACC | AAA | FAA |", "|---|---|---|---|---|"]
    for method in LIDER:
        values = {
            lider: {
                metric: {
                    folder.config().seed: folder.result()["class_incremental"][metric]
                    for folder in runs[method, lider]
                }
                for metric in METRICS
            }
            for lider in (False, True)
        }
        for lider, name in ((False, method), (True, f"{method} + LiDER")):
            found = [summarise(list(values[lider][metric].values())) for metric in METRICS]
            cells = [f"{s.mean:.1f} ± {s.std or 0:.1f}" for s in found if s]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        cells = []
        for metric in METRICS:
            gain = paired_difference(values[True][metric], values[False][metric])
            cells.append(f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]")
        lines.append(f"| difference | {' | '.join(cells)} |")
    return [line.replace("-", "−") if "difference" in line else line for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("runs/gap"))
    parser.add_argument("--figure", type=Path, default=Path("docs/stability-gap.png"))
    given = parser.parse_args()
    runs: dict[tuple[str, bool], list[RunFolder]] = {}
    for seed in SEEDS:  # all arms of a seed first: an interrupted study has whole pairs
        for method in LIDER:
            for lider in (False, True):
                folder = train(method, lider, seed, given.out)
                runs.setdefault((method, lider), []).append(folder)
    draw(runs, given.figure)
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
