"""One function per figure: results in, a matplotlib figure out (`figure.savefig("x.pdf")`).

Results come by label, `{"ER-ACE": …, "ER-ACE + LiDER": …}`, and are drawn in that order. For a
label with several runs, give a list of results: lines are means, bands ± one standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import figure_style as style
from .attacks import Robustness
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
    figure = style.new_figure(4.6, 4.3)
    axes = figure.subplots()
    axes.plot([0, 100], [0, 100], color=style.GREY, lw=1, ls=":", label="guessing (0.50)")
    along = np.linspace(0, 1, 201)
    for number, (label, given) in enumerate(games.items()):
        runs = _as_list(given)
        rates = [np.interp(along, g.false_positive_rate, g.true_positive_rate) for g in runs]
        curves = 100 * np.array(rates)
        curves[:, 0] = 0
        area = f"{np.mean([game.auc for game in runs]):.2f}"
        _mean_line(axes, number, 100 * along, curves, f"{label} ({area})", marker=False)
    axes.set(xlabel="false positive rate (%)", ylabel="true positive rate (%)")
    axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", title="Which samples are in memory?")
    axes.legend(title="(area under the curve)", loc="lower right", fontsize=style.SMALL)
    return figure


def draw_decision_surface(surface: DecisionSurface, title: str = "") -> Figure:
    """One surface, with the boundary S = 0."""
    figure = style.new_figure(4.6, 3.8)
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
    side = min(1.75, (style.PAGE - 1.3) / tasks)
    figure = style.new_figure(1.3 + side * tasks, 0.9 + (side + 0.2) * len(rows))
    panels = figure.subplots(len(rows), tasks, squeeze=False, sharex=True, sharey=True)
    for row, (label, surfaces) in enumerate(rows):
        for task, surface in enumerate(surfaces):
            panel = panels[row, task]
            image = _surface(panel, surface, reach)
            kept = f"{surface.area:.0f} % kept" if side > 1 else f"{surface.area:.0f} %"
            head = f"after task {task + 1}" if side > 1 else f"{task + 1}"
            panel.set_title(f"{head}\n{kept}" if row == 0 else kept, fontsize=style.SMALL)
        panels[row, 0].set_ylabel(label)
    figure.supxlabel("random direction i (pixel, 0…1)", fontsize=style.TITLE)
    figure.supylabel("FGSM direction j (pixel, 0…1)", fontsize=style.TITLE)
    figure.colorbar(image, ax=panels, label="S (difference of logits); line: S = 0")
    return figure


def draw_area_kept(histories: Mapping[str, SurfaceHistory]) -> Figure:
    """How much of the decision surface each group of samples keeps, task after task."""
    figure = style.new_figure(5.0, 3.6)
    axes = figure.subplots()
    number = tasks = 0
    for label, history in histories.items():
        for group in history.surfaces:
            area = history.area(group)
            tasks = max(tasks, len(area))
            style.plot_line(axes, number, range(1, len(area) + 1), area, f"{label}, {group}")
            number += 1
    axes.set(xlabel="tasks seen", ylabel="area with S > 0 (%)", ylim=(0, 102))
    axes.set_xticks(range(1, tasks + 1))
    _add_grid_and_legend(axes)
    return figure


def draw_robustness(results: Mapping[str, Robustness | Sequence[Robustness]]) -> Figure:
    """Accuracy over the size of the attack; one panel per attack."""
    attacks = list(
        dict.fromkeys(a for given in results.values() for a in _as_list(given)[0].accuracy)
    )
    figure = style.new_figure(1.0 + 3.1 * len(attacks), 3.2)
    panels = figure.subplots(1, len(attacks), squeeze=False, sharey=True)[0]
    for panel, attack in zip(panels, attacks, strict=True):
        for number, (label, given) in enumerate(results.items()):
            runs = _as_list(given)
            curves = np.array([run.accuracy[attack] for run in runs])
            _mean_line(panel, number, 255 * runs[0].epsilons, curves, label)
        panel.set(xlabel="size of the attack ε (of 255 grey levels)", title=attack.upper())
        _add_grid_and_legend(panel)
    panels[0].set(ylabel="accuracy (%)", ylim=(0, 102))
    return figure


def draw_weight_perturbation(
    results: Mapping[str, WeightPerturbation | Sequence[WeightPerturbation]],
) -> Figure:
    """Loss and accuracy over the noise; bands over all draws (of all runs)."""
    figure = style.new_figure(style.PAGE, 3.2)
    panels = figure.subplots(1, 2)
    names = {"loss": "cross-entropy", "accuracy": "accuracy (%)"}
    for panel, (quantity, name) in zip(panels, names.items(), strict=True):
        for number, (label, given) in enumerate(results.items()):
            runs = _as_list(given)
            curves = np.concatenate([getattr(run, quantity) for run in runs], axis=1).T
            _mean_line(panel, number, runs[0].sigmas, curves, label)
        unit = "of each filter's length" if runs[0].scale == "filter" else "absolute"
        panel.set(xlabel=f"noise in the weights σ ({unit})", ylabel=name)
        _add_grid_and_legend(panel)
    panels[1].set_ylim(0, 102)
    return figure


def draw_hessian(results: Mapping[str, HessianSpectrum | Sequence[HessianSpectrum]]) -> Figure:
    """Trace (with its error) and the largest eigenvalues."""
    figure = style.new_figure(style.PAGE, 3.2)
    left, right = figure.subplots(1, 2)
    for number, (label, given) in enumerate(results.items()):
        runs = _as_list(given)
        traces = [run.trace for run in runs]
        error = np.std(traces, ddof=1) if len(runs) > 1 else runs[0].trace_error
        look = style.bar_style(number, style.method_of(label)[0])
        left.bar(number, np.mean(traces), yerr=error, **look)
        values = np.array([run.eigenvalues for run in runs])
        _mean_line(right, number, np.arange(1, values.shape[1] + 1), values, label)
    left.set_xticks(range(len(results)), list(results), rotation=20, ha="right")
    left.set(ylabel="trace of the Hessian")
    style.add_grid(left, "y")
    right.set(xlabel="rank", ylabel="eigenvalue of the Hessian", ylim=(0, None))
    right.set_xticks(range(1, values.shape[1] + 1))
    _add_grid_and_legend(right)
    return figure


def draw_lipschitz_bound(results: Mapping[str, LipschitzBound]) -> Figure:
    """Spectral norm of each layer, in running order; the legend has the products."""
    longest = max(results.values(), key=lambda bound: len(bound.norms))
    figure = style.new_figure(1.6 + 0.34 * max(len(longest.norms), 9), 3.9)
    axes = figure.subplots()
    for number, (label, bound) in enumerate(results.items()):
        text = f"{label} ($10^{{{bound.log10:.1f}}}$)"
        style.plot_line(axes, number, range(len(bound.norms)), bound.norms.values(), text)
    axes.set_xticks(range(len(longest.norms)), list(longest.norms), rotation=60, ha="right")
    axes.tick_params(axis="x", labelsize=style.SMALL)
    axes.set(ylabel="spectral norm of the layer", yscale="log")
    style.add_grid(axes)
    axes.legend(title="(product)", fontsize=style.SMALL)
    return figure


def draw_over_buffer(
    sizes: Sequence[int], values: Mapping[str, Sequence[float]], ylabel: str, *, log: bool = False
) -> Figure:
    """Any quantity of the trained network against the size of its memory."""
    figure = style.new_figure(4.8, 3.5)
    axes = figure.subplots()
    for number, (label, row) in enumerate(values.items()):
        style.plot_line(axes, number, sizes, row, label)
    axes.set(xlabel="samples in memory", ylabel=ylabel, xscale="log")
    axes.set_xticks(list(sizes), [str(size) for size in sizes])
    axes.minorticks_off()
    if log:
        axes.set_yscale("log")
    _add_grid_and_legend(axes)
    return figure


def draw_efficiency(points: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> Figure:
    """Accuracy against peak memory and against speed.

    points[label][backbone] = (accuracy in percent, peak memory in bytes, samples per second).
    """
    figure = style.new_figure(style.PAGE, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    names = ("peak memory (GB)", "samples per second")
    for column, panel in enumerate(panels):
        for number, (label, rows) in enumerate(points.items()):
            x = [row[1] / 1e9 if column == 0 else row[2] for row in rows.values()]
            y = [row[0] for row in rows.values()]
            style.plot_line(panel, number, x, y, label)
            look: Any = {"textcoords": "offset points", "fontsize": style.SMALL, "ha": "center"}
            for name, point in zip(rows, zip(x, y, strict=True), strict=True):
                panel.annotate(name, point, (0, -11 if number % 2 else 6), **look)
        panel.set_xlabel(names[column])
        panel.margins(0.12)
        _add_grid_and_legend(panel)
    panels[0].set_ylabel("final average accuracy (%)")
    return figure


def draw_toy(results: Mapping[str, ToyBoundaries]) -> Figure:
    """The plane's regions after each task (columns) by label (rows), with the points in memory."""
    tasks = max(len(result.regions) for result in results.values())
    figure = style.new_figure(0.4 + 2.27 * tasks, 0.4 + 2.5 * len(results))
    panels = figure.subplots(len(results), tasks, squeeze=False, sharex=True, sharey=True)
    for row, (label, result) in enumerate(results.items()):
        for task in range(len(result.regions)):
            panel = panels[row, task]
            _regions(panel, result, task)
            mean = np.nanmean(result.accuracy[task])
            head = f"after task {task + 1}: " if row == 0 else ""
            panel.set_title(f"{head}accuracy {mean:.1f} %", fontsize=style.NORMAL)
        panels[row, 0].set_ylabel(label)
    style.legend_below(figure, columns=2 * tasks, title="in memory")
    return figure


def _regions(panel: Axes, result: ToyBoundaries, task: int) -> None:
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in style.COLOURS])
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
        kind = number % len(style.COLOURS)
        look: Any = {"marker": style.MARKERS[kind], "color": style.COLOURS[kind]}
        look |= {"s": 22, "edgecolors": "black", "linewidths": 0.7}
        panel.scatter(*points.T, label=f"class {number}", **look)
    panel.set(xticks=[], yticks=[], xlim=box[:2], ylim=box[2:], aspect="equal")


def _surface(axes: Axes, surface: DecisionSurface, reach: float) -> Any:
    steps = surface.steps
    options: Any = {"origin": "lower", "extent": (steps[0], steps[-1]) * 2}
    options |= {"interpolation": "nearest"}
    image = style.draw_matrix(axes, surface.height, (-reach, reach), form=None, **options)
    if surface.height.min() < 0 < surface.height.max():
        axes.contour(steps, steps, surface.height, levels=[0], colors="white", linestyles="--")
    axes.plot(0, 0, marker="o", ms=4, mfc="white", mec="black")
    return image


def _reach(surfaces: Sequence[DecisionSurface]) -> float:
    return max(float(np.abs(surface.height).max()) for surface in surfaces) or 1.0


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _mean_line(
    axes: Axes, number: int, x: np.ndarray, curves: np.ndarray, label: str, marker: bool = True
) -> None:
    """The mean of curves (runs, points), with a band if there are several."""
    spread = curves.std(0, ddof=1) if len(curves) > 1 else None
    style.plot_line(axes, number, x, curves.mean(0), label, spread=spread, marker=marker)


def _add_grid_and_legend(axes: Axes) -> None:
    style.add_grid(axes)
    axes.legend(fontsize=style.SMALL)
