"""The reproduction ledger in the terminal and as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import write_atomically
from ..paper.ledger.cells import OURS
from ..paper.ledger.deviations import STATUSES, describe_deviations
from ..paper.ledger.ledger_document import as_json, assemble
from ..paper.ledger.ledger_paths import read_findings
from ..paper.numbers import TABLES
from ..paper.studies.cases import LABELS, METHOD_NAMES

if TYPE_CHECKING:
    from rich.table import Table

    from ..paper.ledger.record import LedgerRecord

Tree = dict[str, Any]
NONE = "–"
FIGURES = {
    "ledger_summary.png": "Final average accuracy of five methods alone and with LiDER",
    "ledger_lambda.png": "Lipschitz constants and targets of every stage over training",
    "ledger_analyses.png": "Guessing game and decision surface of one pair of runs",
}
SETTING_NAMES = {
    "cifar100": "Split CIFAR-100",
    "cifar100-pretrained": "Split CIFAR-100, pre-trained on Tiny ImageNet",
    "miniimagenet": "Split miniImageNet",
    "cub200": "Split CUB-200, pre-trained on ImageNet",
    "cifar100-online": "Split CIFAR-100, 10 tasks, one epoch",
    "cifar100-online20": "Split CIFAR-100, 20 tasks, one epoch",
}
HEAD = """\
# The reproduction ledger

Every cell of the paper's nine tables, ours beside theirs, and what was not run. `lider ledger
collect` writes this page and [ledger.json](ledger.json) from the records of finished runs, one
small file each, which come with the package; `lider ledger` shows them in the terminal.

```
lider ledger                                   # what was measured
lider ledger --table faa --setting cifar100    # part of it; --json for all there is to know
lider ledger check --cell faa/cifar100/500/er-ace+lider   # run a cell again and compare
lider ledger measure --out ledger --workers 2  # all of it; the same command goes on after Ctrl-C
```
"""
LEGEND = """\
FAA: final average accuracy, FF: final forgetting, in percent. Ours: mean ± sample standard
deviation over seeds, their number in brackets, and Student's 95 % interval of the mean. Δ: LiDER's
gain, paired by seed, with its 95 % interval; one seed has neither. *Controlled*: the values of the
method alone, only the penalty switched on, where the paper's row with LiDER has another learning
rate or other weights (marked ᶜ in the tables of the paper). Gap: accuracy on the memory (its images
as they are stored, mean over tasks) minus FAA. The intervals of three seeds have two degrees of
freedom, take differences as normal, and are not corrected for there being several of them.
"""


def write_ledger(records: Sequence[LedgerRecord], folder: Path) -> list[str]:
    """ledger.json, ledger.md and the figures that there are records for; returns their names."""
    from ..analysis.figure_style import small_png
    from ..paper.ledger.figures import draw_all

    ledger = assemble(records)
    figures = draw_all(records, ledger)
    files = {
        "ledger.json": as_json(ledger).encode(),
        "ledger.md": as_markdown(ledger, read_findings(), figures).encode(),
        **{name: small_png(figure) for name, figure in figures.items()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_atomically(folder / name, data)
    return list(files)


def as_markdown(ledger: Tree, by_hand: str = "", figures: Iterable[str] = ()) -> str:
    """The page. by_hand: what somebody wrote about it. figures: those that lie beside it."""
    parts = [HEAD, _counts(ledger), by_hand.strip() + "\n" if by_hand.strip() else ""]
    drawn = [name for name in FIGURES if name in set(figures)]
    if ledger["measured"]:
        parts += ["## What was measured\n", LEGEND, *_measured(ledger)]
        parts += [f"![{FIGURES[name]}]({name})\n" for name in drawn]
        parts += [*_comparisons(ledger), *_analyses(ledger), *_origin(ledger)]
    parts += ["## Every cell of the paper\n", f"{NONE}: not measured.\n"]
    for table, title in TABLES.items():
        parts += [f"### {title}\n", *_table(ledger, table)]
    return "\n".join(part for part in parts if part)


def _counts(ledger: Tree) -> str:
    totals = ledger["totals"]
    rows = [[status, str(totals[status]), STATUSES[status]] for status in STATUSES]
    table = _markdown(["status", "cells", "meaning"], rows)
    sets = {tuple(cell["records"]) for cell in ledger["cells"] if cell["ours"]}
    shared = f"One run may stand in several of the tables: {len(sets)} sets of runs fill the cells."
    return f"Of {totals['cells']} cells:\n\n{table}" + (f"\n{shared}\n" if sets else "")


def _measured(ledger: Tree) -> list[str]:
    """A table for every setting and scale; what its scale changed, under it."""
    parts = []
    kinds = dict.fromkeys((row["setting"], row["scale"]) for row in ledger["measured"])
    for setting, scale in kinds:
        here = [r for r in ledger["measured"] if (r["setting"], r["scale"]) == (setting, scale)]
        titles = ["method", "FAA ↑", "95 %", "FF ↓", "ΔFAA [95 %]", "ΔFF [95 %]"]
        titles += ["paper FAA, FF", "gap"]
        lines = [
            [
                row["label"],
                mean_std(row["faa"]),
                between(row["faa"]),
                mean_std(row["ff"]),
                interval(row["faa_gain"]),
                interval(row["ff_gain"]),
                ", ".join(_number(row["paper"].get(m)) for m in ("faa", "ff")),
                _number(row["gap"], 1),
            ]
            for row in sorted(here, key=_order)
        ]
        name = SETTING_NAMES.get(setting, setting)
        parts.append(f"### {name}, scale `{scale}`\n")
        parts.append(_markdown(titles, lines))
        parts.append(_scale(here))
    return parts


def _order(row: Tree) -> tuple[int, int, str, float]:
    methods, additions = list(METHOD_NAMES), list(LABELS)
    place = methods.index(row["method"]), additions.index(row["addition"])
    return *place, row["estimator"] or "", row["alpha"] or 0.0


def _scale(rows: Sequence[Tree]) -> str:
    """What every run of a table departs in, and then what single ones do."""
    shared = {
        key: change
        for key, change in rows[0]["departs"].items()
        if all(row["departs"].get(key) == change for row in rows)
    }
    text = (
        f"All of them: {describe_deviations(shared)}."
        if shared
        else "Network, data and schedule: the paper's."
    )
    for row in rows:
        own = {k: v for k, v in row["departs"].items() if k not in shared}
        if own:
            text += f" {row['label']}: {describe_deviations(own)}."
    return f"{text}\n"


def _comparisons(ledger: Tree) -> list[str]:
    if not ledger["comparisons"]:
        return []
    titles = ["ER-ACE + LiDER", "FAA", "FAA as usual", "ΔFAA [95 %]", "ΔFF [95 %]"]
    lines = [
        [
            row["comparison"],
            mean_std(row["variant"]),
            mean_std(row["usual"]),
            interval(row["faa"]),
            interval(row["ff"]),
        ]
        for row in ledger["comparisons"]
    ]
    return ["### What LiDER is made of\n", _markdown(titles, lines)]


def _analyses(ledger: Tree) -> list[str]:
    if not ledger["analyses"]:
        return []
    lines = []
    for row in ledger["analyses"]:
        if row["analysis"] == "guessing-game":
            found = (
                f"AUC {_number(row['auc'], 3)}, {row['in_memory']} of {row['samples']} in memory"
            )
        elif row["analysis"] == "lipschitz-vs-buffer":
            stages = row["constants"]["constants"].items()
            found = ", ".join(f"{stage} {_number(value, 3)}" for stage, value in stages)
            found = f"λ on the memory: {found}; mean {_number(row['constants']['mean'], 3)}"
        else:
            found = ", ".join(
                f"{'rehearsed' if group == 'memory' else 'not rehearsed'} {_number(areas[-1], 1)} %"
                for group, areas in row["areas"].items()
            )
            found = f"area kept after the last task: {found}"
        lines.append([row["label"], row["analysis"], found, row["record"]])
    return [
        "### Three looks into one pair of runs\n",
        _markdown(["run", "analysis", "found", "record"], lines),
    ]


def _origin(ledger: Tree) -> list[str]:
    totals = ledger["totals"]
    cpu = f"{_hours(totals['seconds_cpu'])} of CPU time"
    if totals["runs_with_cpu_seconds"] < totals["runs"]:
        cpu = (
            f"{cpu} in the {totals['runs_with_cpu_seconds']} runs that wrote it down"
            if totals["runs_with_cpu_seconds"]
            else "at most as much of CPU time, which none of them wrote down"
        )
    lines = [
        [
            str(row["runs"]),
            row["liderlab"] + (f" ({row['commit'][:10]})" if row["commit"] else ""),
            row["torch"],
            row["python"],
            f"{row['processor']}, {row['instructions']}",
            str(row["threads"]),
        ]
        for row in ledger["versions"]
    ]
    titles = ["runs", "liderlab", "torch", "python", "processor", "threads"]
    clock = f"{_hours(totals['seconds'])} by the clock"
    return [
        "### Cost and versions\n",
        f"{totals['runs']} runs, one thread each: {clock}, {cpu}. Each record "
        "(`src/liderlab/paper/ledger/records/`) has the command that repeats its run (with "
        "the code of that commit), the configuration, the accuracy matrix, and the fingerprint of "
        "the data.\n",
        _markdown(titles, lines),
    ]


def _table(ledger: Tree, table: str) -> list[str]:
    """Settings one below the other: methods as rows, buffers as columns, the paper's and ours."""
    cells = [cell for cell in ledger["cells"] if cell["table"] == table]
    parts = []
    for setting in dict.fromkeys(cell["setting"] for cell in cells):
        here = [cell for cell in cells if cell["setting"] == setting]
        columns = sorted(
            dict.fromkeys(_column(cell) for cell in here if cell["buffer"] is not None),
            key=lambda column: (column[0], column[1] or 0.0, column[2]),
        )
        both = len({cell["metric"] for cell in here}) > 1
        titles = ["method"]
        for buffer, poison, metric in columns:
            name = str(buffer) if poison is None else f"p = {poison:g}"
            name += f", {metric.upper()}" if both else ""
            titles += [f"paper, {name}", f"ours, {name}"]
        lines = []
        for row in dict.fromkeys((cell["method"], cell["addition"]) for cell in here):
            found = {_column(c): c for c in here if (c["method"], c["addition"]) == row}
            line = [METHOD_NAMES[row[0]] + LABELS[row[1]]]
            for column in columns:
                bound = found.get((None, column[1], column[2]))
                line += _pair(found.get(column) or bound)
            lines.append(line)
        parts += [f"{SETTING_NAMES[setting]}\n", _markdown(titles, lines)]
    notes = [f"- `{cell['cell']}`: {cell['note']}." for cell in cells if cell["note"]]
    return [*parts, *(["The paper's own oddities:\n", "\n".join(notes) + "\n"] if notes else [])]


def _column(cell: Tree) -> tuple[int | None, float | None, str]:
    return cell["buffer"], cell["poison"], cell["metric"]


def _pair(cell: Tree | None) -> list[str]:
    """The paper's number and ours; nothing was printed where there is no cell."""
    if cell is None:
        return ["not printed", NONE]
    mark = "ᶜ" if cell["ours"] and _controlled(cell) else ""
    return [f"{cell['paper']:.2f}", mean_std(cell["ours"]) + mark]


def _controlled(cell: Tree) -> bool:
    """Whether more than the size departs from the paper's row."""
    return any(
        key.startswith(("training.lr", "method.alpha", "method.beta")) for key in cell["departs"]
    )


def mean_std(found: Tree | None) -> str:
    """
    >>> mean_std({"mean": 36.931, "std": 0.41, "n": 3}), mean_std(None)
    ('36.93 ± 0.41 (3)', '–')
    """
    if found is None:
        return NONE
    spread = "" if found["std"] is None else f" ± {found['std']:.2f}"
    return f"{found['mean']:.2f}{spread} ({found['n']})"


def interval(found: Tree | None) -> str:
    """
    >>> interval({"mean": 1.0, "low": -0.5, "high": 2.5, "n": 3})
    '+1.00 [-0.50, +2.50]'
    """
    if found is None:
        return NONE
    ends = "" if found["low"] is None else f" [{found['low']:+.2f}, {found['high']:+.2f}]"
    return f"{found['mean']:+.2f}{ends}"


def between(found: Tree | None) -> str:
    """
    >>> between({"mean": 71.0, "low": 68.5159, "high": 73.4841})
    '68.52 … 73.48'
    """
    if found is None or found["low"] is None:
        return NONE
    return f"{found['low']:.2f} … {found['high']:.2f}"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"


def _number(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def _markdown(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [titles, ["---"] * len(titles), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def cell_table(rows: Sequence[Tree]) -> Table:
    """For the terminal: one line per cell, in 80 columns."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("cell", overflow="fold")
    for title in ("paper", "ours", "scale"):
        table.add_column(title, justify="left" if title == "scale" else "right", no_wrap=True)
    for row in rows:
        printed = f"{row['paper']:.2f}" if "paper" in row else NONE
        table.add_row(row["cell"], printed, mean_std(row["ours"]), _kind(row))
    return table


def _kind(row: Tree) -> str:
    status: str = row["status"].partition(":")[0]
    return NONE if status == "not measured" else status.partition(" ")[0]


def table_counts(ledger: Tree) -> Table:
    """For the terminal: how much of every table was measured."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("table")
    for title in ("cells", *STATUSES):
        table.add_column(title, justify="right")
    for name in TABLES:
        here = [cell for cell in ledger["cells"] if cell["table"] == name]
        counts = [sum(c["status"].startswith(status) for c in here) for status in STATUSES]
        table.add_row(name, str(len(here)), *map(str, counts))
    if ledger["ours"]:
        table.add_row(f"{OURS} (not in the paper)", str(len(ledger["ours"])), "", "", "")
    return table
