"""The data behind the report's first page: a row per seed group, and all that filters need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Any

from ... import __version__
from ...analysis.figure_style import hues
from ...config.diff import flat
from ...config.identity import experiment_fields
from ...functional.statistics import mean_interval, summarise
from ...paper.ledger.record import LedgerRecord
from ...runs.result_schema import settings_of
from ..glossary import ANYTIME, METRICS, SETTINGS, TERMS
from ..run_records import RunRecord, accuracy_so_far, proper_names
from ..seed_groups import (
    RegularizerPair,
    SeedGroup,
    differing,
    group_by_seed,
    pairs_without,
    seed_difference,
)
from .curves import round_to_screen
from .reference_numbers import PaperNumbers, in_ledger, in_paper
from .run_data import as_text
from .verdicts import best_of_settings, full_label, pair_sentence

Tree = dict[str, Any]


def overview(
    records: Sequence[RunRecord],
    title: str,
    paper: PaperNumbers,
    ledger: Iterable[LedgerRecord] | None = None,
) -> Tree:
    """Metrics, terms, the groups with their means, and the runs.

    paper, ledger: numbers to show beside the groups. ledger: by default the package's records.
    """
    groups = group_by_seed(records)
    rows = [_row(group, groups, paper) for group in groups]
    searched = _searched_fields(groups)
    numbers = {id(record): number for number, record in enumerate(records)}
    hue_of = hues(record.method for record in records)
    runs = [_run(record) for record in records]
    best, leads = best_of_settings(groups)
    for index, (group, known) in enumerate(zip(groups, in_ledger(groups, ledger), strict=True)):
        rows[index] |= {"runs": [numbers[id(run)] for run in group.runs], "ledger": known}
        rows[index] |= {
            "best": best[index],
            "leads": leads[index],
            "hue": hue_of[group.first.method],
        }
        rows[index]["fields"] = [
            _plain(experiment_fields(group.first.config).get(f)) for f in searched
        ]
        for number in rows[index]["runs"]:
            runs[number]["group"] = index
    configs = [flat(record.config) for record in records]
    return {
        "title": title,
        "version": __version__,
        "metrics": {key: vars(metric) for key, metric in METRICS.items()},
        "anytime": {key: vars(metric) for key, metric in ANYTIME.items()},
        "terms": TERMS,
        "groups": rows,
        "runs": runs,
        "fields": searched,
        "varying": {
            field: Counter(as_text(c[field]) if field in c else None for c in configs).most_common(
                8
            )
            for field in differing(configs)
            if not field.startswith("scale.changes")
        },
    }


def _row(group: SeedGroup, groups: Sequence[SeedGroup], paper: PaperNumbers) -> Tree:
    run = group.first
    finished = [r for r in group.runs if r.result]
    changes = (run.config.get("scale") or {}).get("changes") or {}
    curves = {s: [accuracy_so_far(r.matrix(s)) for r in finished] for s in SETTINGS}
    return {
        "label": group.label,
        "method": run.method,
        "additions": run.regularizers,
        "note": group.note,
        "benchmark": run.stream,
        "settings": dict.fromkeys(SETTINGS, run.setting) | settings_of({"setting": run.setting}),
        "tasks": run.tasks,
        "buffer": run.buffer,
        "scale": run.scale,
        "changes": [f"{f}: {now.get('from')} → {now.get('to')}" for f, now in changes.items()],
        "seeds": len({r.seed for r in finished}),
        "values": _by_metric(lambda s, m: _mean(list(group.values(s, m).values()))),
        "gains": [
            _pair(group, pair, _place(group, groups)) for pair in pairs_without(group, groups)
        ],
        "paper": in_paper(group, paper),
        "curve": {setting: _mean_curve(curves[setting]) for setting in SETTINGS},
    }


def _run(record: RunRecord) -> Tree:
    return {
        "name": record.name,
        "seed": record.seed,
        "state": record.state,
        "seconds": (record.result or {}).get("seconds"),
        "values": _by_metric(record.metric),
    }


def _by_metric(value: Callable[[str, str], Any]) -> Tree:
    return {s: {m: value(s, m) for m in METRICS} for s in SETTINGS}


def _mean(values: Sequence[float]) -> Tree | None:
    """Mean, standard deviation, half of Student's 95 % interval, and number of the values."""
    found = summarise(values)
    return {**vars(found), "half": mean_interval(values).half} if found else None


def _pair(group: SeedGroup, pair: RegularizerPair, where: str) -> Tree:
    """What the regularisers that only the group has bring, by setting."""
    return {
        "name": " + ".join(proper_names(pair.added)),
        "over": full_label(pair.without),
        "also": list(pair.also),
        "values": {s: _gain(group, pair.without, s) for s in SETTINGS},
        "sentences": {s: pair_sentence(group, pair, s, where) for s in SETTINGS},
    }


def _gain(group: SeedGroup, other: SeedGroup, setting: str) -> Tree | None:
    """The difference in FAA, with its interval and the difference of each common seed."""
    ours, theirs = group.values(setting, "faa"), other.values(setting, "faa")
    found = seed_difference(ours, theirs)
    common = sorted(ours.keys() & theirs.keys())
    points = [[seed, round_to_screen(ours[seed] - theirs[seed])] for seed in common]
    return {**vars(found), "points": points} if found else None


def _place(group: SeedGroup, groups: Sequence[SeedGroup]) -> str:
    """The benchmark, and the buffer if the report has several there."""
    run = group.first
    here = {g.first.buffer for g in groups if g.first.stream == run.stream} - {None}
    return run.stream + (f", buffer {run.buffer}" if len(here) > 1 else "")


def _searched_fields(groups: Sequence[SeedGroup]) -> list[str]:
    """Fields in which the experiments of a sweep or search differ, beside the benchmark's."""
    return [
        field
        for field in differing([experiment_fields(group.first.config) for group in groups])
        if not field.startswith(("scale.", "benchmark."))
    ]


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) or value is None else as_text(value)


def _mean_curve(curves: Sequence[Sequence[float | None]]) -> Tree:
    """Mean and standard deviation over runs, task by task, and every run's values."""
    points = [[v for v in values if v is not None] for values in zip(*curves, strict=False)]
    return {
        "mean": [round_to_screen(fmean(values)) if values else None for values in points],
        "std": [round_to_screen(stdev(values)) if len(values) > 1 else None for values in points],
        "runs": [[v if v is None else round_to_screen(v) for v in run] for run in curves],
    }
