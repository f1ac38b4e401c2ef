"""The ledger's figures, drawn from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...analysis import figure_style as style
from ..studies.cases import METHOD_NAMES
from .campaign import BOUNDS, BUFFER, METHODS, SETTING
from .measured_cases import MeasuredCase, measured_cases, spread
from .record import Curves, LedgerRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .record import Tree

SERIES = {"": "alone", "lider": "+ LiDER, all else equal"}
PRINTED = "the paper's, its scale and tuning"
QUANTITIES = {"constants": "λ of the stage", "targets": "its target c"}
CURVES = """\
Over the steps of training, one seed; dotted: ends of tasks. Every panel has its own scale.
Points are means over stretches of steps. λ begins with the first replay; GDumb replays only
at the end, when it learns the memory."""


def draw_all(records: Sequence[LedgerRecord], ledger: Tree) -> dict[str, Figure]:
    """The figures by file name, without those that no record has values for."""
    found = {
        "ledger_summary.png": draw_summary(records, ledger),
        "ledger_lambda.png": draw_curves(records),
        "ledger_analyses.png": draw_analyses(ledger),
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def draw_summary(records: Sequence[LedgerRecord], ledger: Tree) -> Figure | None:
    """FAA of every method alone and with LiDER, at the same learning rate: the mean with its 95 %
    interval and every seed; finetune and joint as lines. Beside it, LiDER's gains."""
    groups = _summary_cases(records)
    rehearsing = [method for method in METHODS if (method, "") in groups]
    if not rehearsing:
        return None
    figure = style.new_figure(style.PAGE, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    style.add_series_keys(left, SERIES.values())
    for number, addition in enumerate(SERIES):
        for place, method in enumerate(rehearsing):
            if group := groups.get((method, addition)):
                _bar(left, place + (number - 0.5) * 0.34, group, style.bar_style(number, method))
    for method, dashes in zip(BOUNDS, (":", "--"), strict=True):
        if group := groups.get((method, "")):
            level = spread(group.values("faa"))["mean"]
            left.axhline(level, color=style.GREY, ls=dashes, lw=1.2, label=METHOD_NAMES[method])
    names = [METHOD_NAMES[method] for method in rehearsing]
    left.set_xticks(range(len(rehearsing)), names, fontsize=style.NORMAL)
    left.set(ylabel="final average accuracy (%)", ylim=(0, None))
    left.set_xlim(-0.6, len(rehearsing) - 0.4)
    style.add_grid(left, "y")
    _gains(right, groups, rehearsing, ledger)
    whiskers = "whiskers: Student's 95 % interval of the mean"
    style.legend_below(figure, columns=3, title=whiskers)
    title = "Final average accuracy, alone and with LiDER"
    style.add_heading(figure, title, _facts(list(groups.values())))
    return figure


def _facts(groups: Sequence[MeasuredCase]) -> list[str]:
    """Benchmark and scale, which all groups share, and their smallest and largest seed counts."""
    config = groups[0].records[0].config
    size = f"{config['training']['epochs']} epochs, width {config['backbone'].get('width')}"
    where = [config["benchmark"]["name"], f"buffer {config['memory']['size']}"]
    counts = sorted({len(group.records) for group in groups})
    seeds = "…".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    many = "s" if counts[-1] > 1 else ""
    return [*where, f"scale {groups[0].scale} ({size})", f"{seeds} seed{many}"]


def _bar(axes: Axes, x: float, group: MeasuredCase, look: dict[str, Any]) -> None:
    """A bar with its interval, and a dot for every seed."""
    values = group.values("faa")
    found = spread(values)
    error = None if found["low"] is None else [[found["mean"] - found["low"]]] * 2
    axes.bar(x, found["mean"], 0.32, yerr=error, **look)
    dots = [x + 0.05 + 0.045 * place for place in range(len(values))]
    dot = style.PRINTED | {"marker": "o", "ms": 3.5, "mew": 0.7}
    axes.plot(dots, list(values.values()), label="one seed", **dot)


def _gains(
    axes: Axes, groups: dict[tuple[str, str], MeasuredCase], methods: Sequence[str], ledger: Tree
) -> None:
    """LiDER's gain, paired by seed, with its 95 % interval, and the paper's gain."""
    printed = {
        row["method"]: row["paper_gain"]
        for row in ledger["cells"]
        if (row["table"], row["setting"], row["buffer"], row["addition"])
        == ("faa", SETTING, BUFFER, "lider")
    }
    drawn = {group.records[0].name for group in groups.values()}
    gains = {
        row["method"]: row["faa_gain"]
        for row in ledger["measured"]
        if row["addition"] == "lider" and row["records"][0] in drawn
    }
    for place, method in enumerate(methods):
        if (gain := gains.get(method)) is not None:
            low, high = gain["low"], gain["high"]
            error = None if low is None else [[gain["mean"] - low], [high - gain["mean"]]]
            colour = style.METHOD_COLOURS[method]
            look: Any = {"color": colour, "mec": "black", "ms": 6, "ecolor": colour}
            look |= {"fmt": "s", "capsize": 3, "label": "LiDER's gain, paired by seed"}
            axes.errorbar(gain["mean"], place, xerr=error, **look)
        axes.plot(printed[method], place - 0.22, label=PRINTED, **style.PRINTED)
    axes.axvline(0, color=style.GREY, lw=1)
    names = [METHOD_NAMES[method] for method in methods]
    axes.set_yticks(range(len(methods)), names, fontsize=style.NORMAL)
    axes.set_ylim(len(methods) - 0.5, -0.5)  # from above, in the order of the left panel
    axes.set_xlabel("LiDER's gain in FAA (points)")
    style.add_grid(axes, "x")


def _summary_cases(records: Sequence[LedgerRecord]) -> dict[tuple[str, str], MeasuredCase]:
    """The configurations of the summary: the controlled form, where it differs from the tuned."""
    found: dict[tuple[str, str], MeasuredCase] = {}
    for group in measured_cases(records):
        case = group.case
        if case.setting == SETTING and case == case.as_usual and case.buffer in (None, BUFFER):
            key = (case.method, case.addition)
            if case.addition in SERIES and (key not in found or case.column == "controlled"):
                found[key] = group
    return found


def draw_curves(records: Sequence[LedgerRecord]) -> Figure | None:
    """λ_k and c_k of every stage (columns) over training, for every method with LiDER (rows): its
    first seed. Dotted lines: ends of tasks."""
    groups = _summary_cases(records)
    rows = {
        METHOD_NAMES[method]: curves
        for method in METHODS
        if (group := groups.get((method, "lider"))) and (curves := group.records[0].curves)
    }
    if not rows:
        return None
    stages = list(dict.fromkeys(stage for curves in rows.values() for stage in curves.constants))
    figure = style.new_figure(0.9 + 1.75 * len(stages), 0.9 + 1.25 * len(rows))
    panels = figure.subplots(len(rows), len(stages), squeeze=False, sharex="row")
    for row, (label, curves) in enumerate(rows.items()):
        for column, stage in enumerate(stages):
            panel = panels[row, column]
            _stage(panel, curves, stage)
            if row == 0:
                panel.set_title(stage, fontsize=style.NORMAL)
        panels[row, 0].set_ylabel(f"{label}\n+ LiDER", fontsize=style.NORMAL)
    style.legend_below(figure, columns=3, title=CURVES)
    drawn = [group for (_, addition), group in groups.items() if addition == "lider"]
    title = "Lipschitz constants and their targets over training"
    style.add_heading(figure, title, [*_facts(drawn)[:-1], "one seed"])
    return figure


def _stage(panel: Axes, curves: Curves, stage: str) -> None:
    for number, (quantity, label) in enumerate(QUANTITIES.items()):
        values = getattr(curves, quantity).get(stage)
        if values:
            style.plot_line(panel, number, curves.step, values, label, marker=False, lw=1.4)
    for border in curves.borders[:-1]:
        panel.axvline(border, color=style.GREY, lw=0.6, ls=":")
    panel.tick_params(labelsize=style.SMALL)
    panel.set_xticks([0, curves.step[-1]])
    panel.margins(y=0.15)


def draw_analyses(ledger: Tree) -> Figure | None:
    """The ROC curves of the guessing game, and the areas kept of the decision surface."""
    found = sorted(ledger["analyses"], key=lambda row: (len(row["label"]), row["record"]))
    games = [row for row in found if row["analysis"] == "guessing-game" and row["auc"]]
    surfaces = [row for row in found if row["analysis"] == "decision-surface"]
    if not games and not surfaces:
        return None
    figure = style.new_figure(style.PAGE, 3.3)
    scales = ", ".join(dict.fromkeys(row["scale"] for row in found))
    facts = [f"split-{SETTING}", f"buffer {BUFFER}", f"scale {scales}", "one seed"]
    style.add_heading(figure, "Samples in memory, and the network around them", facts)
    left, right = figure.subplots(1, 2)
    runs = list(dict.fromkeys(row["record"] for row in found))  # a colour each, in both panels
    for row in games:
        rates = row["false_positive_rate"], row["true_positive_rate"]
        label = f"{row['label']}: {row['auc']:.3f}"
        style.plot_line(left, runs.index(row["record"]), *rates, label, marker=False)
        title = f"{row['in_memory']} of {row['samples']} samples of task 1 in memory"
        left.set_title(f"guessing game, AUC\n{title}")
    left.plot([0, 1], [0, 1], color=style.GREY, lw=0.8, ls=(0, (2, 2)))
    left.set(xlabel="false positive rate", ylabel="true positive rate")
    for row in surfaces:
        _surface(right, row, runs.index(row["record"]))
    right.set(xlabel="tasks seen", ylabel="area decided rightly (%)", ylim=(0, 102))
    for panel in (left, right):
        panel.title.set_fontsize(style.TITLE)
        style.add_grid(panel)
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=style.SMALL - 1)
    return figure


def _surface(panel: Axes, row: Tree, number: int) -> None:
    """Filled markers: samples in memory; hollow ones: other samples."""
    tasks = [task + 1 for task in row["tasks"]]
    for group, areas in row["areas"].items():
        full = group == "memory"
        label = f"{row['label']}, {'rehearsed' if full else 'not rehearsed'}"
        look = style.line_style(number, label)
        fill: Any = {"ls": look["ls"], "mfc": look["color"] if full else "white"}
        style.plot_line(panel, number, tasks, areas, label, **fill)
    samples = " and ".join(str(count) for count in row["samples"].values())
    panel.set_title(f"decision surface around samples of task 1\n({samples} samples, one seed)")
