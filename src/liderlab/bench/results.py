"""The results of `lider bench`: kept in a JSON file, shown as tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

Tree = dict[str, Any]


def read_results(path: Path, machine: Tree) -> dict[str, Tree]:
    """The measures that an earlier call on this machine has written, by name."""
    if not path.exists():
        return {}
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        same, measures = report["machine"] == machine, dict(report["measures"])
        for measure in measures.values():
            result_table(measure)
    except (OSError, ValueError, LookupError, TypeError):
        raise UserError(f"{path} is not a report of lider bench: choose another --out") from None
    if not same:
        raise UserError(
            f"{path} was measured under other conditions: choose another --out, or --force"
        )
    return measures


def result_table(measure: Tree) -> Table:
    """One row per ratio: times, median, middle half, limit, and whether it is met."""
    from rich.table import Table

    title = f"{measure['name']}: {measure['summary']}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("ratio of", min_width=24)
    for column in ("ms", "ratio", "middle half", "limit"):
        table.add_column(column, justify="right")
    table.add_column("")
    for row in measure["ratios"]:
        times = [measure["milliseconds"][row[side]] for side in ("above", "below")]
        table.add_row(
            f"{row['above']} / {row['below']}",
            " / ".join(f"{time:.1f}" for time in times),
            f"{row['value']:.3f}",
            f"{row['low']:.3f}…{row['high']:.3f}",
            _limit(row),
            {None: "", True: "met", False: "missed"}[row["met"]],
        )
    return table


def _limit(row: Tree) -> str:
    if row["most"] is not None:
        return f"≤ {row['most']:.2f}"
    return "–" if row["least"] is None else f"≥ {row['least']:.1f}"


def describe_machine(machine: Tree) -> str:
    """One line: processor, clock and versions."""
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} thread(s), "
        f"{machine['clock']} clock; torch {machine['torch']}, Python {machine['python']}, "
        f"liderlab {machine['liderlab']}; {machine['platform']}"
    )
