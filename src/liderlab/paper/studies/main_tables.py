"""Tables FAA and FF: five methods with and without LiDER, between finetune and joint training."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from ...functional.statistics import paired_difference
from .. import numbers
from .accuracy_table import COLUMNS, accuracy_rows
from .cases import METHOD_NAMES, Case, Request, buffers, chosen_settings, over_seeds
from .study_definition import Findings, FinishedCase, Row, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ("cifar100", "cifar100-pretrained", "miniimagenet", "cub200")
BOUNDS = ("joint", "finetune")
METHODS = ("icarl", "der++", "x-der-rpc", "gdumb", "er-ace")
TABLES = {"faa": "faa", "ff": "ff"}
Kind = Literal["tuned", "controlled"]
KINDS: tuple[Kind, ...] = ("tuned", "controlled")


def cases(request: Request) -> list[Case]:
    found: list[Case] = []
    for setting in chosen_settings(SETTINGS, request):
        found += [Case(setting, None, method) for method in BOUNDS]
        for buffer in buffers(setting)[: 1 if request.smoke else None]:
            for method in METHODS:
                found.append(Case(setting, buffer, method))
                found += [Case(setting, buffer, method, "lider", kind) for kind in KINDS]
    return over_seeds(found, request)


def compute(finished: Sequence[FinishedCase], request: Request) -> Findings:
    rows = accuracy_rows(finished, TABLES)
    settings = dict.fromkeys(run.case.setting for run in finished)
    gains = [_average_gain(finished, setting) for setting in settings]
    notes = [_sentence(gain) for gain in gains]
    return Findings(rows, COLUMNS, notes, {"average_gain": gains})


def _average_gain(finished: Sequence[FinishedCase], setting: str) -> Row:
    """LiDER's mean gain over methods and buffers, its interval over seeds; and the paper's.

    The text's own averages leave X-DER out, and so do ours, to be comparable.
    """
    row: Row = {
        "setting": setting,
        "paper_text": next(
            (c.value for c in numbers.claims() if (c.name, c.setting) == ("average-gain", setting)),
            None,
        ),
        "paper_cells": numbers.average_gain(setting),
        "paper_cells_all_methods": numbers.average_gain(setting, METHODS),
    }
    for kind in KINDS:
        if found := paired_difference(*_seed_means(finished, setting, kind)):
            row |= {kind: found.mean, f"{kind}_low": found.low, f"{kind}_high": found.high}
    return row


def _seed_means(
    finished: Sequence[FinishedCase], setting: str, kind: Kind
) -> tuple[dict[int, float], dict[int, float]]:
    """Mean FAA by seed, with and without LiDER, over the methods and buffers that have both."""
    values = {
        (run.case.seed, run.case.method, run.case.buffer, run.case.addition, run.case.column): value
        for run in finished
        if run.case.setting == setting and (value := run.metric("faa")) is not None
    }
    treated, plain = {}, {}
    for seed in sorted({run.case.seed for run in finished}):
        both = [
            (values[seed, method, buffer, "lider", kind], values[seed, method, buffer, "", "tuned"])
            for s, method, buffer, addition, column in values
            if (s, addition, column) == (seed, "lider", kind)
            and method in numbers.AVERAGED
            and (seed, method, buffer, "", "tuned") in values
        ]
        if both:
            treated[seed] = fmean(a for a, _ in both)
            plain[seed] = fmean(b for _, b in both)
    return treated, plain


def _sentence(gain: Row) -> str:
    """One setting's average gain in words."""
    methods = ", ".join(METHOD_NAMES[method] for method in numbers.AVERAGED)
    ours = [f"{kind} {_interval(gain, kind)}" for kind in KINDS if kind in gain]
    text = gain["paper_text"]
    printed = "prints none for this setting" if text is None else f"prints +{text:.2f}"
    return (
        f"Average gain of LiDER in {gain['setting']} over {methods}: {', '.join(ours)}. The paper "
        f"{printed}; its cells give {gain['paper_cells']:+.2f} over these methods, and "
        f"{gain['paper_cells_all_methods']:+.2f} with X-DER-RPC."
    )


def _interval(gain: Row, kind: Kind) -> str:
    low, high = gain[f"{kind}_low"], gain[f"{kind}_high"]
    return f"{gain[kind]:+.2f}" + ("" if low is None else f" [{low:+.2f}, {high:+.2f}]")


def show(findings: Findings) -> Figure:
    from .charts import accuracy_bars

    series = {"alone": ("", "tuned"), "+ LiDER, tuned": ("lider", "tuned")}
    series["+ LiDER, controlled"] = ("lider", "controlled")
    rehearsing = [row for row in findings.rows if row["method"] not in BOUNDS]
    bounds = [row for row in findings.rows if row["method"] in BOUNDS]
    return accuracy_bars(rehearsing, series, bounds)


STUDY = Study(
    title="Rehearsal methods with and without LiDER",
    paper=f"{numbers.TABLES['faa']}; {numbers.TABLES['ff']}",
    settings=SETTINGS,
    cases=cases,
    compute=compute,
    show=show,
)
