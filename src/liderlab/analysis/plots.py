"""One function per figure: results in, a matplotlib figure out (`figure.savefig("x.pdf")`).

Results come by label, `{"ER-ACE": …, "ER-ACE + LiDER": …}`, and keep their order. Where a label
stands for several runs, give a list of results: lines are means, bands ± one standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .attacks import Robustness
from .figure_style import COLOURS, LINES, MARKERS, new_figure
from .guessing import GuessingGame
from .lipschitz_bounds import LipschitzBound
from .loss_curvature import HessianSpectrum
from .surface import DecisionSurface, SurfaceHistory
from .toy_problem import ToyBoundaries
from .weight_noise import WeightPerturbation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_guessing_game(games: Mapping[str, GuessingGame | Sequence[GuessingGame]]) -> Figure:
    """ROC curves; the legend has the areas under them."""
    figure = new_figure(4.6, 4.3)
    axes = figure.subplots()
    axes.plot([0, 100], [0, 100], color="0.6", lw=1, ls=":", label="guessing (0.50)")
    along = np.linspace(0, 1, 201)
    for number, (label, given) in enumerate(games.items()):
        runs = _several(given)
        rates = [np.interp(along, g.false_positive_rate, g.true_positive_rate) for g in runs]
        curves = 100 * np.array(rates)
        curves[:, 0] = 0
        area = f"{np.mean([game.auc for game in runs]):.2f}"
        _line(axes, number, 100 * along, curves, f"{label} ({area})", marker=False)
    axes.set(xlabel="false positive rate (%)", ylabel="true positive rate (%)")
    axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", title="Which samples are in memory?")
    axes.legend(title="(area under the curve)", loc="lower right", fontsize=8)
    return figure


def draw_decision_surface(surface: DecisionSurface, title: str = "") -> Figure:
    """One surface, with the boundary S = 0."""
    figure = new_figure(4.6, 3.8)
    axes = figure.subplots()
    image = _surface(axes, surface, _reach([surface]))
    axes.set(xlabel="random direction i (pixel, 0…1)", ylabel="FGSM direction j (pixel, 0…1)")
    axes.set_title(title or f"area kept: {surface.area:.0f} %")
    figure.colorbar(image, ax=axes, label="S (difference of logits)")
    return figure


def draw_surface_history(histories: Mapping[str, SurfaceHistory]) -> Figure:
    """Rows: every label's groups of samples; columns: after each task."""
    rows = [
        (f"{label}\n{group}" if len(histories) > 1 else group, surfaces)
        for label, history in histories.items()
        for group, surfaces in history.surfaces.items()
    ]
    tasks = max(len(surfaces) for _, surfaces in rows)
    reach = _reach([surface for _, surfaces in rows for surface in surfaces])
    figure = new_figure(1.3 + 1.75 * tasks, 0.9 + 1.75 * len(rows))
    panels = figure.subplots(len(rows), tasks, squeeze=False, sharex=True, sharey=True)
    for row, (label, surfaces) in enumerate(rows):
        for task, surface in enumerate(surfaces):
            panel = panels[row, task]
            image = _surface(panel, surface, reach)
            kept = f"{surface.area:.0f} % kept"
            panel.set_title(f"after task {task + 1}\n{kept}" if row == 0 else kept, fontsize=9)
        panels[row, 0].set_ylabel(label)
    figure.supxlabel("random direction i (pixel, 0…1)", fontsize=10)
    figure.supylabel("FGSM direction j (pixel, 0…1)", fontsize=10)
    figure.colorbar(image, ax=panels, label="S (difference of logits); line: S = 0")
    return figure


def draw_area_kept(histories: Mapping[str, SurfaceHistory]) -> Figure:
    """How much of the decision surface each group of samples keeps, task after task."""
    figure = new_figure(5.0, 3.6)
    axes = figure.subplots()
    number = tasks = 0
    for label, history in histories.items():
        for group in history.surfaces:
            area = history.area(group)
            tasks = max(tasks, len(area))
            _line(axes, number, np.arange(1, len(area) + 1), area[None], f"{label}, {group}")
            number += 1
    axes.set(xlabel="tasks seen", ylabel="area with S > 0 (%)", ylim=(0, 102))
    axes.set_xticks(range(1, tasks + 1))
    _finish(axes)
    return figure


def draw_robustness(results: Mapping[str, Robustness | Sequence[Robustness]]) -> Figure:
    """Accuracy over the size of the attack; one panel per attack."""
    attacks = list(
        dict.fromkeys(a for given in results.values() for a in _several(given)[0].accuracy)
    )
    figure = new_figure(1.0 + 3.6 * len(attacks), 3.5)
    panels = figure.subplots(1, len(attacks), squeeze=False, sharey=True)[0]
    for panel, attack in zip(panels, attacks, strict=True):
        for number, (label, given) in enumerate(results.items()):
            runs = _several(given)
            curves = np.array([run.accuracy[attack] for run in runs])
            _line(panel, number, 255 * runs[0].epsilons, curves, label)
        panel.set(xlabel="size of the attack ε (of 255 grey levels)", title=attack.upper())
        _finish(panel)
    panels[0].set(ylabel="accuracy (%)", ylim=(0, 102))
    return figure


def draw_weight_perturbation(
    results: Mapping[str, WeightPerturbation | Sequence[WeightPerturbation]],
) -> Figure:
    """Loss and accuracy over the noise; bands over all draws (of all runs)."""
    figure = new_figure(8.2, 3.5)
    panels = figure.subplots(1, 2)
    names = {"loss": "cross-entropy", "accuracy": "accuracy (%)"}
    for panel, (quantity, label_y) in zip(panels, names.items(), strict=True):
        for number, (label, given) in enumerate(results.items()):
            runs = _several(given)
            curves = np.concatenate([getattr(run, quantity) for run in runs], axis=1).T
            _line(panel, number, runs[0].sigmas, curves, label)
        relative = runs[0].scale == "filter"
        unit = "of each filter's length" if relative else "absolute"
        panel.set(xlabel=f"noise in the weights σ ({unit})", ylabel=label_y)
        _finish(panel)
    panels[1].set_ylim(0, 102)
    return figure


def draw_hessian(results: Mapping[str, HessianSpectrum | Sequence[HessianSpectrum]]) -> Figure:
    """Trace (with its error) and the largest eigenvalues."""
    figure = new_figure(8.2, 3.5)
    left, right = figure.subplots(1, 2)
    for number, (label, given) in enumerate(results.items()):
        runs = _several(given)
        traces = [run.trace for run in runs]
        error = np.std(traces, ddof=1) if len(runs) > 1 else runs[0].trace_error
        left.bar(number, np.mean(traces), yerr=error, capsize=4, **_bar(number))
        values = np.array([run.eigenvalues for run in runs])
        _line(right, number, np.arange(1, values.shape[1] + 1), values, label)
    left.set_xticks(range(len(results)), list(results), rotation=20, ha="right")
    left.set(ylabel="trace of the Hessian")
    left.grid(alpha=0.3, axis="y")
    right.set(xlabel="rank", ylabel="eigenvalue of the Hessian", ylim=(0, None))
    right.set_xticks(range(1, values.shape[1] + 1))
    _finish(right)
    return figure


def draw_lipschitz_bound(results: Mapping[str, LipschitzBound]) -> Figure:
    """Spectral norm of each layer, in running order; the legend has the products."""
    longest = max(results.values(), key=lambda bound: len(bound.norms))
    figure = new_figure(1.6 + 0.34 * max(len(longest.norms), 9), 3.9)
    axes = figure.subplots()
    for number, (label, bound) in enumerate(results.items()):
        values = np.array(list(bound.norms.values()))
        text = f"{label} ($10^{{{bound.log10:.1f}}}$)"
        _line(axes, number, np.arange(len(values)), values[None], text)
    axes.set_xticks(range(len(longest.norms)), list(longest.norms), rotation=60, ha="right")
    axes.tick_params(axis="x", labelsize=7)
    axes.set(ylabel="spectral norm of the layer", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend(title="(product)", fontsize=8)
    return figure


def draw_over_buffer(
    sizes: Sequence[int], values: Mapping[str, Sequence[float]], ylabel: str, *, log: bool = False
) -> Figure:
    """Any number of the trained network against the size of the memory."""
    figure = new_figure(4.8, 3.5)
    axes = figure.subplots()
    for number, (label, row) in enumerate(values.items()):
        _line(axes, number, np.array(sizes), np.array(row, dtype=float)[None], label)
    axes.set(xlabel="samples in memory", ylabel=ylabel, xscale="log")
    axes.set_xticks(list(sizes), [str(size) for size in sizes])
    axes.minorticks_off()
    if log:
        axes.set_yscale("log")
    _finish(axes)
    return figure


def draw_efficiency(
    points: Mapping[str, Mapping[str, tuple[float, float, float]]],
) -> Figure:
    """Accuracy against peak memory and against speed.

    points[label][backbone] = (accuracy in percent, peak memory in bytes, samples per second).
    """
    figure = new_figure(8.6, 3.7)
    panels = figure.subplots(1, 2, sharey=True)
    names = ("peak memory (GB)", "samples per second")
    for column, panel in enumerate(panels):
        for number, (label, rows) in enumerate(points.items()):
            x = np.array([row[1] / 1e9 if column == 0 else row[2] for row in rows.values()])
            y = np.array([row[0] for row in rows.values()])
            _line(panel, number, x, y[None], label)
            for name, place in zip(rows, zip(x, y, strict=True), strict=True):
                below = -11 if number % 2 else 6
                panel.annotate(
                    name, place, (0, below), textcoords="offset points", fontsize=7, ha="center"
                )
        panel.set_xlabel(names[column])
        panel.margins(0.12)
        _finish(panel)
    panels[0].set_ylabel("final average accuracy (%)")
    return figure


def draw_toy(results: Mapping[str, ToyBoundaries]) -> Figure:
    """The plane's regions after each task (columns), by label (rows), and what memory holds."""
    tasks = max(len(result.regions) for result in results.values())
    figure = new_figure(1.0 + 2.5 * tasks, 0.7 + 2.5 * len(results))
    panels = figure.subplots(len(results), tasks, squeeze=False, sharex=True, sharey=True)
    for row, (label, result) in enumerate(results.items()):
        for task in range(len(result.regions)):
            panel = panels[row, task]
            _regions(panel, result, task)
            mean = np.nanmean(result.accuracy[task])
            head = f"after task {task + 1}: " if row == 0 else ""
            panel.set_title(f"{head}accuracy {mean:.1f} %", fontsize=9)
        panels[row, 0].set_ylabel(label)
    handles, labels = panels[0, -1].get_legend_handles_labels()
    figure.legend(handles, labels, title="in memory", loc="outside right center", fontsize=8)
    return figure


def _regions(panel: Axes, result: ToyBoundaries, task: int) -> None:
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in COLOURS])
    regions = result.regions[task]
    tint = palette[regions % len(palette)]
    strength = 0.15 + 0.45 * result.probability[task][..., None]
    x, y = result.axis_x, result.axis_y
    box = (x[0], x[-1], y[0], y[-1])
    panel.imshow(1 - strength * (1 - tint), origin="lower", extent=box, interpolation="nearest")
    for number in range(int(regions.max()) + 1):
        panel.contour(x, y, regions == number, levels=[0.5], colors="0.25", linewidths=0.7)
    stored_x, stored_y = result.memory_x[task], result.memory_y[task]
    for number in range(int(stored_y.max()) + 1):
        points = stored_x[stored_y == number]
        style = {"marker": MARKERS[number % 6], "s": 22, "edgecolors": "black", "linewidths": 0.7}
        colour = COLOURS[number % len(COLOURS)]
        panel.scatter(*points.T, color=colour, label=f"class {number}", **style)  # type: ignore[arg-type]
    panel.set(xticks=[], yticks=[], xlim=box[:2], ylim=box[2:], aspect="equal")


def _surface(axes: Axes, surface: DecisionSurface, reach: float) -> Any:
    steps = surface.steps
    box = (steps[0], steps[-1], steps[0], steps[-1])
    image = axes.imshow(
        surface.height,
        origin="lower",
        extent=box,
        cmap="cividis",
        vmin=-reach,
        vmax=reach,
        interpolation="nearest",
    )
    if surface.height.min() < 0 < surface.height.max():
        axes.contour(steps, steps, surface.height, levels=[0], colors="white", linestyles="--")
    axes.plot(0, 0, marker="o", ms=4, mfc="white", mec="black")
    return image


def _reach(surfaces: Sequence[DecisionSurface]) -> float:
    return max(float(np.abs(surface.height).max()) for surface in surfaces) or 1.0


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _line(
    axes: Axes, number: int, x: np.ndarray, curves: np.ndarray, label: str, marker: bool = True
) -> None:
    """The mean of curves (runs, points), in the number's own colour, dashes and marker."""
    colour = COLOURS[number % len(COLOURS)]
    mean = curves.mean(0)
    shape = MARKERS[number % len(MARKERS)] if marker else None
    dashes: Any = LINES[number % len(LINES)]
    axes.plot(x, mean, color=colour, ls=dashes, marker=shape, ms=5, label=label)
    if len(curves) > 1:
        spread = curves.std(0, ddof=1)
        axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0)


def _bar(number: int) -> dict[str, Any]:
    hatches = ("", "//", "..", "xx", "\\\\", "++")
    return {
        "color": COLOURS[number % len(COLOURS)],
        "hatch": hatches[number % len(hatches)],
        "edgecolor": "black",
    }


def _finish(axes: Axes) -> None:
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
