"""The result of a search in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ..formatting import MISSING, number

SHOWN = 4  # trials beside each other


def search_table(rows: Sequence[Mapping[str, Any]], importances: Mapping[str, float]) -> Table:
    """The best trials beside each other, a line per field, the most important field first.

    rows: number, state, accuracy and values of every trial. It fits in 80 columns.
    """
    finished = [row for row in rows if row["state"] == "complete"]
    best = sorted(finished, key=lambda row: (-row["accuracy"], row["number"]))[:SHOWN]
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("best trials", overflow="fold")
    for row in best:
        table.add_column(str(row["number"]), justify="right", overflow="fold")
    if importances:
        table.add_column("importance", justify="right", no_wrap=True)
    accuracies = [number(row["accuracy"]) for row in best]
    table.add_row("validation accuracy (%)", *accuracies, style="bold")
    fields = dict.fromkeys(field for row in best for field in row["values"])
    for field in sorted(fields, key=lambda field: -importances.get(field, 0.0)):
        values = [_value(row["values"].get(field, MISSING)) for row in best]
        share = [number(importances[field])] if field in importances else []
        table.add_row(*map(Text, [field, *values, *share]))
    return table


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def trial_counts(rows: Sequence[Mapping[str, Any]]) -> str:
    """
    >>> trial_counts([{"state": "complete"}, {"state": "complete"}, {"state": "pruned"}])
    '3 trials: 2 complete, 1 pruned'
    """
    counts = Counter(row["state"] for row in rows)
    trials = "1 trial" if len(rows) == 1 else f"{len(rows)} trials"
    return f"{trials}: " + ", ".join(f"{n} {state}" for state, n in counts.items())
