"""Two runs, or two folders of runs, beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...config.diff import flat
from ...errors import UserError
from ...functional.statistics import ConfidenceInterval
from ..definitions import METRICS
from ..run_records import (
    BOOKKEEPING,
    SETTINGS,
    Record,
    by_seed,
    differing,
    read_all,
    seed_difference,
)
from .tables import SETTINGS as SETTING_LABELS
from .tables import mean_and_std


@dataclass(frozen=True)
class Comparison:
    """Two sides: runs that differ within a side in their seeds alone.

    left_out: a complaint about each run that is damaged."""

    names: tuple[str, str]
    sides: tuple[list[Record], list[Record]]
    left_out: list[str]

    @classmethod
    def of(cls, a: Path, b: Path) -> Comparison:
        (one, damaged), (other, also_damaged) = _side(a), _side(b)
        return cls((str(a), str(b)), (one, other), [*damaged, *also_damaged])

    def configuration(self) -> dict[str, list[Any]]:
        """Fields whose values differ, with both values; several on a side: those of its first."""
        configs = [flat(side[0].config) for side in self.sides]
        fields = [f for f in differing(configs) if not f.startswith("scale.changes")]
        alone = [len(side) == 1 for side in self.sides]
        return {
            field: [config.get(field) for config in configs]
            for field in fields
            if (all(alone) or field != "seed") and configs[0].get(field) != configs[1].get(field)
        }

    def values(self, side: int, setting: str, metric: str) -> dict[int, float]:
        return by_seed(self.sides[side], setting, metric)

    def difference(self, setting: str, metric: str) -> ConfidenceInterval | None:
        """b − a."""
        return seed_difference(*(self.values(side, setting, metric) for side in (1, 0)))

    def as_tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {
            "a": self.names[0],
            "b": self.names[1],
            "runs": [len(side) for side in self.sides],
            "configuration": self.configuration(),
        }
        for setting in SETTINGS:
            tree[setting] = {}
            for metric in METRICS:
                found = [list(self.values(side, setting, metric).values()) for side in (0, 1)]
                means = [fmean(values) if values else None for values in found]
                between = self.difference(setting, metric)
                tree[setting][metric] = {
                    "a": means[0],
                    "b": means[1],
                    "difference": between and vars(between),
                }
        return tree


def _side(path: Path) -> tuple[list[Record], list[str]]:
    """Its runs, and what is wrong with those that cannot be read."""
    records, complaints = read_all([path])
    fields = [
        field
        for field in differing([flat(record.config) for record in records])
        if not field.startswith(BOOKKEEPING)
    ]
    if fields:
        raise UserError(
            f"the runs in {path} differ in more than their seeds ({', '.join(fields[:5])}): "
            "compare single runs, or see all of them with: lider report"
        )
    if not any(record.result for record in records):
        raise UserError(f"no run in {path} has finished: there is nothing to compare yet")
    return records, complaints


def comparison_tables(comparison: Comparison) -> Iterator[RenderableType]:
    """What differs in the configuration, then the metrics; they fit in 80 columns."""
    for letter, name, side in zip("AB", comparison.names, comparison.sides, strict=True):
        seeds = list(dict.fromkeys(str(run.seed) for run in side))
        what = f"{name}: {side[0].label}, seed{'s' * (len(seeds) != 1)} {', '.join(seeds)}"
        yield Text.assemble((f"{letter}  ", "bold"), what)
    yield _configuration(comparison.configuration())
    yield _metrics(comparison)


def _configuration(fields: dict[str, list[Any]]) -> RenderableType:
    if not fields:
        return Text("\nThe configurations are the same.")
    table = Table(title="what differs", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("", "A", "B"):
        table.add_column(column, overflow="fold")
    for field, (a, b) in fields.items():
        table.add_row(Text(field), Text(_plain(a)), Text(_plain(b)))
    return table


def _plain(value: Any) -> str:
    return "–" if value is None else str(value)


def _metrics(comparison: Comparison) -> Table:
    table = Table(title="percent", title_justify="left")
    for column in ("", "A", "B", "B − A"):
        table.add_column(column, justify="left" if not column else "right")
    for setting, label in SETTING_LABELS.items():
        table.add_row(Text(label, style="dim"))
        for metric, fact in METRICS.items():
            sides: Sequence[str] = [
                mean_and_std(list(comparison.values(side, setting, metric).values()))
                for side in (0, 1)
            ]
            arrow = "↑" if fact.better > 0 else "↓"
            between = comparison.difference(setting, metric)
            table.add_row(f"  {fact.label} {arrow}", *sides, _difference(between, fact.better))
    return table


def _difference(between: ConfidenceInterval | None, better: int) -> Text:
    """Coloured where the interval, if there is one, leaves no doubt."""
    if between is None:
        return Text("–")
    if between.half is None:
        return Text(signed(between.mean))
    style = ""
    if abs(between.mean) > between.half:
        style = "green" if between.mean * better > 0 else "red"
    return Text(f"{signed(between.mean)} ± {between.half:.2f}", style=style)


def signed(value: float) -> str:
    """With two decimals; what rounds to nothing has no sign.

    >>> signed(1.234), signed(-0.001)
    ('+1.23', '0.00')
    """
    text = f"{value:+.2f}"
    return text if float(text) else "0.00"
