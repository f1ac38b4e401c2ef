"""Two runs, or two folders of seeds, side by side."""

from __future__ import annotations

from collections.abc import Iterator
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
from ..formatting import MISSING, mean_std_of, plain, signed
from ..glossary import METRICS, SETTINGS
from ..run_records import read_all
from ..seed_groups import (
    SeedGroup,
    differing,
    differing_experiment_fields,
    group_by_seed,
    seed_difference,
)


@dataclass(frozen=True)
class Comparison:
    """Two groups of runs. left_out: a message about each damaged run."""

    names: tuple[str, str]
    a: SeedGroup
    b: SeedGroup
    left_out: list[str]

    @classmethod
    def of(cls, a: Path, b: Path) -> Comparison:
        (group_a, damaged_a), (group_b, damaged_b) = _read_side(a), _read_side(b)
        return cls((str(a), str(b)), group_a, group_b, [*damaged_a, *damaged_b])

    def configuration(self) -> dict[str, list[Any]]:
        """Fields that differ, with both values; of several runs on a side, the first one's."""
        a, b = flat(self.a.first.config), flat(self.b.first.config)
        one_each = len(self.a.runs) == len(self.b.runs) == 1
        return {
            field: [a.get(field), b.get(field)]
            for field in differing([a, b])
            if not field.startswith("scale.changes")
            and (one_each or field != "seed")
            and a.get(field) != b.get(field)
        }

    def difference(self, setting: str, metric: str) -> ConfidenceInterval | None:
        """b − a."""
        return seed_difference(self.b.values(setting, metric), self.a.values(setting, metric))

    def as_tree(self) -> dict[str, Any]:
        """The comparison as plain values, for --json."""
        tree: dict[str, Any] = {
            "a": self.names[0],
            "b": self.names[1],
            "runs": [len(self.a.runs), len(self.b.runs)],
            "configuration": self.configuration(),
        }
        for setting in SETTINGS:
            tree[setting] = {}
            for metric in METRICS:
                found = [list(side.values(setting, metric).values()) for side in (self.a, self.b)]
                a, b = (fmean(values) if values else None for values in found)
                between = self.difference(setting, metric)
                difference = between and vars(between)
                tree[setting][metric] = {"a": a, "b": b, "difference": difference}
        return tree


def _read_side(path: Path) -> tuple[SeedGroup, list[str]]:
    """The runs in a folder, and a message about each one that cannot be read."""
    records, problems = read_all([path])
    first, *others = group_by_seed(records)
    if others:
        fields = differing_experiment_fields(records)
        raise UserError(
            f"the runs in {path} differ in more than their seeds ({', '.join(fields[:5])}): "
            "compare single runs, or see all of them with: lider report"
        )
    if not any(record.result for record in records):
        raise UserError(f"no run in {path} has finished: there is nothing to compare yet")
    return first, problems


def comparison_tables(comparison: Comparison) -> Iterator[RenderableType]:
    """The differences in configuration, then the metrics; both fit in 80 columns."""
    sides = (comparison.a, comparison.b)
    for letter, name, side in zip("AB", comparison.names, sides, strict=True):
        seeds = list(dict.fromkeys(str(run.seed) for run in side.runs))
        text = f"{name}: {side.label}, seed{'s' * (len(seeds) != 1)} {', '.join(seeds)}"
        yield Text.assemble((f"{letter}  ", "bold"), text)
    yield _configuration_table(comparison.configuration())
    yield _metric_table(comparison)


def _configuration_table(fields: dict[str, list[Any]]) -> RenderableType:
    if not fields:
        return Text("\nThe configurations are the same.")
    table = Table(title="differences", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("", "A", "B"):
        table.add_column(column, overflow="fold")
    for field, values in fields.items():
        table.add_row(*map(Text, (field, *map(plain, values))))
    return table


def _metric_table(comparison: Comparison) -> Table:
    table = Table(title="percent", title_justify="left")
    for column in ("", "A", "B", "B − A"):
        table.add_column(column, justify="right" if column else "left")
    for setting, label in SETTINGS.items():
        table.add_row(Text(label, style="dim"))
        for metric, fact in METRICS.items():
            means = [
                mean_std_of(list(side.values(setting, metric).values()))
                for side in (comparison.a, comparison.b)
            ]
            difference = _difference(comparison.difference(setting, metric), fact.better)
            table.add_row(f"  {fact.label} {fact.arrow}", *means, difference)
    return table


def _difference(between: ConfidenceInterval | None, better: int) -> Text:
    """Green or red where the interval does not hold 0."""
    if between is None:
        return Text(MISSING)
    if between.half is None:
        return Text(signed(between.mean))
    style = ""
    if abs(between.mean) > between.half:
        style = "green" if between.mean * better > 0 else "red"
    return Text(f"{signed(between.mean)} ± {between.half:.2f}", style=style)
