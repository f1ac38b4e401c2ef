"""Tables FAA and FF: five methods with and without LiDER, between finetune and joint training."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ...functional.statistics import paired_difference
from .. import numbers
from .cases import METHOD_NAMES, Request
from .study_definition import Findings, FinishedCase, Row, Study
from .study_rows import ACCURACY_COLUMNS, accuracy_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUNDS = ("joint", "finetune")
METHODS = ("icarl", "der++", "x-der-rpc", "gdumb", "er-ace")
SERIES = {
    "alone": ("", "tuned"),
    "+ LiDER, tuned": ("lider", "tuned"),
    "+ LiDER, controlled": ("lider", "controlled"),
}
KINDS = ("tuned", "controlled")


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = accuracy_rows(finished, {"faa": "faa", "ff": "ff"})
    settings = dict.fromkeys(run.case.setting for run in finished)
    gains = [_average_gain(finished, setting) for setting in settings]
    notes = [_sentence(gain) for gain in gains]
    return Findings(rows, ACCURACY_COLUMNS, notes, {"average_gain": gains})


def _average_gain(finished: Sequence[FinishedCase], setting: str) -> Row:
    """LiDER's mean gain over methods and buffers, its interval over seeds; and the paper's.

    The averages in the paper's text leave X-DER out; ours do the same, to be comparable.
    """
    claims = [c for c in numbers.claims() if (c.name, c.setting) == ("average-gain", setting)]
    row: Row = {
        "setting": setting,
        "paper_text": claims[0].value if claims else None,
        "paper_cells": numbers.average_gain(setting),
        "paper_cells_all_methods": numbers.average_gain(setting, METHODS),
    }
    for kind in KINDS:
        if found := paired_difference(*_seed_means(finished, setting, kind)):
            row |= {kind: found.mean, f"{kind}_low": found.low, f"{kind}_high": found.high}
    return row


def _seed_means(
    finished: Sequence[FinishedCase], setting: str, kind: str
) -> tuple[dict[int, float], dict[int, float]]:
    """Mean FAA by seed, with and without LiDER, over the methods and buffers that have both."""
    values: dict[tuple[str, str], dict[tuple[int, str, int | None], float]] = {}
    for run in finished:
        case, faa = run.case, run.metric("faa")
        if case.setting == setting and case.method in numbers.AVERAGED and faa is not None:
            column = values.setdefault((case.addition, case.column), {})
            column[case.seed, case.method, case.buffer] = faa
    treated, plain = values.get(("lider", kind), {}), values.get(("", "tuned"), {})
    both = [key for key in treated if key in plain]
    seeds = sorted({seed for seed, _, _ in both})
    with_it, alone = (
        {seed: fmean(column[key] for key in both if key[0] == seed) for seed in seeds}
        for column in (treated, plain)
    )
    return with_it, alone


def _sentence(gain: Row) -> str:
    """One setting's average gain in words."""
    methods = ", ".join(METHOD_NAMES[method] for method in numbers.AVERAGED)
    ours = ", ".join(f"{kind} {_interval(gain, kind)}" for kind in KINDS if kind in gain)
    text = gain["paper_text"]
    printed = "prints none for this setting" if text is None else f"prints +{text:.2f}"
    return (
        f"Average gain of LiDER in {gain['setting']} over {methods}: {ours}. The paper "
        f"{printed}; its cells give {gain['paper_cells']:+.2f} over these methods, and "
        f"{gain['paper_cells_all_methods']:+.2f} with X-DER-RPC."
    )


def _interval(gain: Row, kind: str) -> str:
    low, high = gain[f"{kind}_low"], gain[f"{kind}_high"]
    return f"{gain[kind]:+.2f}" + ("" if low is None else f" [{low:+.2f}, {high:+.2f}]")


def show(findings: Findings) -> Figure:
    from .charts import accuracy_bars

    rehearsing = [row for row in findings.rows if row["method"] not in BOUNDS]
    bounds = [row for row in findings.rows if row["method"] in BOUNDS]
    return accuracy_bars(rehearsing, SERIES, bounds)


STUDY = Study(
    title="Rehearsal methods with and without LiDER",
    paper=f"{numbers.TABLES['faa']}; {numbers.TABLES['ff']}",
    settings=("cifar100", "cifar100-pretrained", "miniimagenet", "cub200"),
    bounds=BOUNDS,
    variants=[
        {"method": method, "addition": addition, "column": column}
        for method in METHODS
        for addition, column in SERIES.values()
    ],
    compute=compute,
    show=show,
)
