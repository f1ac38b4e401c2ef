"""The reproduction ledger as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...files import write_atomically
from ...paper.ledger.deviations import STATUSES, describe_deviations
from ...paper.ledger.ledger_document import as_json, assemble
from ...paper.ledger.ledger_paths import read_findings
from ...paper.numbers import TABLES
from ...paper.studies.cases import LABELS, METHOD_NAMES
from ..formatting import MISSING, markdown_table, mean_std, number, with_interval

if TYPE_CHECKING:
    from ...paper.ledger.record import LedgerRecord

Tree = dict[str, Any]
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
MEASURED = ["method", "FAA ↑", "95 %", "FF ↓", "ΔFAA [95 %]", "ΔFF [95 %]", "paper FAA, FF", "gap"]
HEAD = """\
# The reproduction ledger

Every cell of the paper's nine tables: the paper's number and ours, or a dash where we have not
measured it. `lider ledger collect` writes this page and [ledger.json](ledger.json) from the records
of finished runs, which come with the package; `lider ledger` shows them in the terminal.

```
lider ledger                                   # the cells that were measured
lider ledger --table faa --setting cifar100    # some of the cells; --json prints every detail
lider ledger check --cell faa/cifar100/500/er-ace+lider   # run a cell again and compare
lider ledger measure --out ledger --workers 2  # run everything; repeat it to resume after Ctrl-C
```
"""
LEGEND = """\
FAA is final average accuracy and FF final forgetting, both in percent.

- Our numbers: mean ± sample standard deviation over seeds, with the number of seeds in brackets.
  The column *95 %* is Student's interval of the mean. One seed gives no deviation and no interval.
- Δ: LiDER's gain, paired by seed, with its 95 % interval.
- *Controlled*: where the paper's row with LiDER has another learning rate or other weights than the
  method alone, these runs keep the values of the method alone and only switch the penalty on. The
  tables of the paper mark them with ᶜ.
- Gap: accuracy on the memory (images as stored, mean over tasks) minus FAA.
- Intervals over three seeds have two degrees of freedom, assume normal differences, and are not
  corrected for multiple comparisons.
"""


def write_ledger(records: Sequence[LedgerRecord], folder: Path) -> list[str]:
    """Write ledger.json, ledger.md and the figures that have records; return their names."""
    from ...analysis.figure_style import small_png
    from ...paper.ledger.figures import draw_all

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


def as_markdown(ledger: Tree, findings: str = "", figures: Iterable[str] = ()) -> str:
    """The page. findings: the text written by hand. figures: names of the files beside the page."""
    parts = [HEAD, _status_counts(ledger), findings.strip() + "\n" if findings.strip() else ""]
    if ledger["measured"]:
        drawn = [name for name in FIGURES if name in set(figures)]
        parts += ["## Measured results\n", LEGEND, *_measured(ledger)]
        parts += [f"![{FIGURES[name]}]({name})\n" for name in drawn]
        parts += [*_ablations(ledger), *_analyses(ledger), *_cost_and_versions(ledger)]
    parts += ["## Every cell of the paper\n", f"{MISSING}: not measured.\n"]
    for table, title in TABLES.items():
        parts += [f"### {title}\n", *_paper_table(ledger, table)]
    return "\n".join(part for part in parts if part)


def _status_counts(ledger: Tree) -> str:
    totals = ledger["totals"]
    rows = [[status, str(totals[status]), STATUSES[status]] for status in STATUSES]
    table = markdown_table(["status", "cells", "meaning"], rows)
    sets = {tuple(cell["records"]) for cell in ledger["cells"] if cell["ours"]}
    shared = f"A run can fill several cells: {len(sets)} sets of runs fill all the measured ones."
    return f"Of {totals['cells']} cells:\n\n{table}" + (f"\n{shared}\n" if sets else "")


def _measured(ledger: Tree) -> list[str]:
    """A table for every setting and scale, with the deviations from the paper under it."""
    parts = []
    kinds = dict.fromkeys((row["setting"], row["scale"]) for row in ledger["measured"])
    for setting, scale in kinds:
        here = [r for r in ledger["measured"] if (r["setting"], r["scale"]) == (setting, scale)]
        table = markdown_table(MEASURED, map(_measured_row, sorted(here, key=_row_order)))
        name = SETTING_NAMES.get(setting, setting)
        parts += [f"### {name}, scale `{scale}`\n", table, _deviations(here)]
    return parts


def _measured_row(row: Tree) -> list[str]:
    paper = ", ".join(number(row["paper"].get(metric)) for metric in ("faa", "ff"))
    ours = [mean_std_n(row["faa"]), _interval(row["faa"]), mean_std_n(row["ff"])]
    gains = [_gain(row["faa_gain"]), _gain(row["ff_gain"])]
    return [row["label"], *ours, *gains, paper, number(row["gap"], 1)]


def _row_order(row: Tree) -> tuple[int, int, str, float]:
    method, addition = list(METHOD_NAMES).index(row["method"]), list(LABELS).index(row["addition"])
    return method, addition, row["estimator"] or "", row["alpha"] or 0.0


def _deviations(rows: Sequence[Tree]) -> str:
    """The deviations that all rows of a table share, then those of single rows."""
    shared = {
        key: change
        for key, change in rows[0]["departs"].items()
        if all(row["departs"].get(key) == change for row in rows)
    }
    lines = [f"- all rows: {describe_deviations(shared)}"] if shared else []
    for row in rows:
        if own := {k: v for k, v in row["departs"].items() if k not in shared}:
            lines.append(f"- {row['label']}: {describe_deviations(own)}")
    if not lines:
        return "Network, data and schedule are the paper's.\n"
    return "\n".join(["Deviations from the paper:\n", *lines, ""])


def _ablations(ledger: Tree) -> list[str]:
    if not ledger["comparisons"]:
        return []
    titles = ["ER-ACE + LiDER", "FAA", "FAA as usual", "ΔFAA [95 %]", "ΔFF [95 %]"]
    lines = []
    for row in ledger["comparisons"]:
        means, gains = (row["variant"], row["usual"]), (row["faa"], row["ff"])
        lines.append([row["comparison"], *map(mean_std_n, means), *map(_gain, gains)])
    return ["### Ablations of LiDER\n", markdown_table(titles, lines)]


def _analyses(ledger: Tree) -> list[str]:
    if not ledger["analyses"]:
        return []
    rows = [[r["label"], r["analysis"], _finding(r), r["record"]] for r in ledger["analyses"]]
    table = markdown_table(["run", "analysis", "found", "record"], rows)
    return ["### Three analyses of one pair of runs\n", table]


def _finding(row: Tree) -> str:
    if row["analysis"] == "guessing-game":
        return f"AUC {number(row['auc'], 3)}, {row['in_memory']} of {row['samples']} in memory"
    if row["analysis"] == "lipschitz-vs-buffer":
        stages = row["constants"]["constants"].items()
        constants = ", ".join(f"{stage} {number(value, 3)}" for stage, value in stages)
        return f"λ on the memory: {constants}; mean {number(row['constants']['mean'], 3)}"
    areas = ", ".join(
        f"{'rehearsed' if group == 'memory' else 'not rehearsed'} {number(areas[-1], 1)} %"
        for group, areas in row["areas"].items()
    )
    return f"area kept after the last task: {areas}"


def _cost_and_versions(ledger: Tree) -> list[str]:
    totals = ledger["totals"]
    recorded = totals["runs_with_cpu_seconds"]
    cpu = f"{_hours(totals['seconds_cpu'])} of CPU time"
    if recorded < totals["runs"]:
        cpu += f" in the {recorded} runs that recorded it"
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
    return [
        "### Cost and versions\n",
        f"{totals['runs']} runs with one thread each took {_hours(totals['seconds'])} of wall-clock"
        f" time, {cpu}. Each record (`src/liderlab/paper/ledger/records/`) holds the command that "
        "repeats its run with the code of that commit, the configuration, the accuracy matrix, and "
        "the fingerprint of the data.\n",
        markdown_table(titles, lines),
    ]


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"


def _paper_table(ledger: Tree, table: str) -> list[str]:
    """Per setting: methods as rows, buffers as columns, the paper's number and ours."""
    cells = [cell for cell in ledger["cells"] if cell["table"] == table]
    parts = []
    for setting in dict.fromkeys(cell["setting"] for cell in cells):
        here = [cell for cell in cells if cell["setting"] == setting]
        parts += [f"{SETTING_NAMES[setting]}\n", _setting_table(here)]
    if notes := [f"- `{cell['cell']}`: {cell['note']}." for cell in cells if cell["note"]]:
        parts += ["Oddities in the paper's table:\n", "\n".join(notes) + "\n"]
    return parts


def _setting_table(cells: Sequence[Tree]) -> str:
    columns = sorted(
        {_column(cell) for cell in cells if cell["buffer"] is not None},
        key=lambda column: (column[0], column[1] or 0.0, column[2]),
    )
    several_metrics = len({cell["metric"] for cell in cells}) > 1
    titles = ["method"]
    for buffer, poison, metric in columns:
        name = str(buffer) if poison is None else f"p = {poison:g}"
        name += f", {metric.upper()}" if several_metrics else ""
        titles += [f"paper, {name}", f"ours, {name}"]
    lines = []
    for method, addition in dict.fromkeys((cell["method"], cell["addition"]) for cell in cells):
        row = {_column(c): c for c in cells if (c["method"], c["addition"]) == (method, addition)}
        line = [METHOD_NAMES[method] + LABELS[addition]]
        for column in columns:
            bound = row.get((None, *column[1:]))  # a bound needs no memory: it fits every buffer
            line += _paper_and_ours(row.get(column) or bound)
        lines.append(line)
    return markdown_table(titles, lines)


def _column(cell: Tree) -> tuple[int | None, float | None, str]:
    return cell["buffer"], cell["poison"], cell["metric"]


def _paper_and_ours(cell: Tree | None) -> list[str]:
    """ᶜ marks controlled runs: those that deviate in the learning rate or the weights."""
    if cell is None:
        return ["not printed", MISSING]
    values = ("training.lr", "method.alpha", "method.beta")
    controlled = cell["ours"] and any(key.startswith(values) for key in cell["departs"])
    return [f"{cell['paper']:.2f}", mean_std_n(cell["ours"]) + ("ᶜ" if controlled else "")]


def mean_std_n(found: Tree | None) -> str:
    """
    >>> mean_std_n({"mean": 36.931, "std": 0.41, "n": 3}), mean_std_n(None)
    ('36.93 ± 0.41 (3)', '–')
    """
    return f"{mean_std(found['mean'], found['std'])} ({found['n']})" if found else MISSING


def _gain(found: Tree | None) -> str:
    return with_interval(found["mean"], found["low"], found["high"]) if found else MISSING


def _interval(found: Tree | None) -> str:
    if found is None or found["low"] is None:
        return MISSING
    return f"{found['low']:.2f} … {found['high']:.2f}"
