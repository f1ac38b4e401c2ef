"""Two runs, or two folders of seeds, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ...config.diff import flat
from ...errors import UserError, unknown
from ...functional.statistics import ConfidenceInterval
from ...runs.result_schema import settings_of
from ..formatting import MISSING, mean_std_of, number, plain
from ..glossary import ANYTIME, METRICS, SETTINGS
from ..html_table import html_table
from ..run_records import read_all, seed_folders, without_seed
from ..seed_groups import (
    SeedGroup,
    differing_experiment_fields,
    group_by_seed,
    seed_difference,
)

ALL = METRICS | ANYTIME


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two groups of runs, a and b. left_out: a message about each damaged run."""

    names: tuple[str, str]
    groups: tuple[SeedGroup, SeedGroup]
    left_out: list[str]

    @classmethod
    def of(cls, a: Path | Sequence[Path], b: Path | Sequence[Path]) -> Comparison:
        """Each side is a run folder, a folder that holds its seeds, the common name or a pattern of
        such folders, or several of them."""
        sides = [[side] if isinstance(side, Path) else list(side) for side in (a, b)]
        name_a, name_b = map(_side_name, sides)
        (group_a, damaged_a), (group_b, damaged_b) = map(_read_group, sides, (name_a, name_b))
        return cls((name_a, name_b), (group_a, group_b), [*damaged_a, *damaged_b])

    @classmethod
    def among(cls, paths: Sequence[Path]) -> Comparison:
        """Two sides; or one folder, or many as a shell expands a pattern, with two experiments."""
        if len(paths) == 2:
            return cls.of(*paths)
        records, damaged = read_all([f for path in paths for f in seed_folders(path)])
        sides = [[run.path for run in group.runs] for group in group_by_seed(records)]
        if len(sides) != 2:
            listed = ", ".join(map(_side_name, sides[:6])) + (", …" if len(sides) > 6 else "")
            raise UserError(f"two experiments are compared, but these are {len(sides)}: {listed}")
        return replace(cls.of(*sides), left_out=damaged)

    def configuration(self) -> dict[str, list[Any]]:
        """Fields that differ, with the values of the first run on each side."""
        a, b = (flat(group.first.config) for group in self.groups)
        one_each = all(len(group.runs) == 1 for group in self.groups)
        return {
            field: [a.get(field), b.get(field)]
            for field in a | b
            if a.get(field) != b.get(field)
            and not field.startswith("scale.changes")
            and (one_each or field != "seed")
        }

    @property
    def settings(self) -> dict[str, str]:
        """The accuracies of a result, by their names in it, with the setting of both sides."""
        a, b = (settings_of({"setting": group.first.setting}) for group in self.groups)
        both = {key: a[key] for key in a if key in b}
        return {key: a[key] if a[key] == b[key] else f"A: {a[key]}\nB: {b[key]}" for key in both}

    def metric(
        self, setting: str, metric: str
    ) -> tuple[list[float], list[float], ConfidenceInterval | None]:
        """The values of a and of b, and b − a."""
        a, b = (group.values(setting, metric) for group in self.groups)
        return list(a.values()), list(b.values()), seed_difference(b, a)

    def difference(
        self, metric: str = "faa", setting: str = "class_incremental"
    ) -> ConfidenceInterval | None:
        """b − a, paired by seed, with its 95 % interval; None where the metric is not defined."""
        if metric not in ALL:
            raise unknown("metric", metric, ALL)
        if setting not in SETTINGS:
            raise unknown("setting", setting, SETTINGS)
        return self.metric(setting, metric)[-1]

    def as_tree(self) -> dict[str, Any]:
        """The comparison as plain values, for --json."""
        tree: dict[str, Any] = dict(zip("ab", self.names, strict=True))
        tree["runs"] = [len(group.runs) for group in self.groups]
        tree["setting"] = [group.first.setting for group in self.groups]
        tree["configuration"] = self.configuration()
        for setting in SETTINGS:
            tree[setting] = {}
            for metric in self._metrics():
                *values, between = self.metric(setting, metric)
                a, b = (fmean(v) if v else None for v in values)
                difference = between and vars(between)
                tree[setting][metric] = {"a": a, "b": b, "difference": difference}
        return tree

    def __repr__(self) -> str:
        console = Console(width=80, color_system=None, file=StringIO(), force_jupyter=False)
        with console.capture() as printed:
            console.print(*comparison_tables(self), sep="\n", markup=False, highlight=False)
        return printed.get()

    def _repr_html_(self) -> str:
        """The metrics as a table, for notebooks."""
        a, b = (
            f"{group.label} ({name})" for group, name in zip(self.groups, self.names, strict=True)
        )
        rows = [
            [f"{label}, {ALL[metric].label} {ALL[metric].arrow}", *map(str, cells)]
            for setting, label in self.settings.items()
            for metric, cells in self._cells(setting)
        ]
        title = f"A: {a}; B: {b}. {_metric_title(self)}"
        return html_table(title, ["", "A", "B", "B − A"], rows)

    def _metrics(self) -> list[str]:
        """All metrics that a run can have, and those of evaluation during tasks if one has them."""
        more = any(
            "aaa" in (run.result or {}).get("class_incremental", {})
            for group in self.groups
            for run in group.runs
        )
        return [*METRICS, *ANYTIME] if more else [*METRICS]

    def _cells(self, setting: str) -> Iterator[tuple[str, tuple[str, str, Text]]]:
        """The texts of a, b and b − a for every metric."""
        for metric in self._metrics():
            a, b, between = self.metric(setting, metric)
            better = ALL[metric].better
            yield metric, (mean_std_of(a), mean_std_of(b), _difference(between, better))


def _side_name(paths: Sequence[Path]) -> str:
    """The common name of several folders, one for each seed, or their number."""
    if len(paths) == 1:
        return str(paths[0])
    names = {without_seed(path) for path in paths}
    return names.pop() if len(names) == 1 else f"{len(paths)} folders"


def _read_group(paths: Sequence[Path], name: str) -> tuple[SeedGroup, list[str]]:
    """The runs in some folders, and a message about each one that cannot be read."""
    if not paths:
        raise UserError("there is no run to compare: give a run folder, or several")
    records, problems = read_all([folder for path in paths for folder in seed_folders(path)])
    group, *others = group_by_seed(records)
    if others:
        fields = differing_experiment_fields(records)
        raise UserError(
            f"the runs in {name} differ in more than their seeds ({', '.join(fields[:5])}): "
            "compare single runs, or see all of them with: lider report"
        )
    if not any(record.result for record in records):
        raise UserError(f"no run in {name} has finished: there is nothing to compare yet")
    return group, problems


def comparison_tables(comparison: Comparison) -> Iterator[RenderableType]:
    """The differences in configuration, then the metrics; both fit in 80 columns."""
    for letter, name, group in zip("AB", comparison.names, comparison.groups, strict=True):
        seeds = list(dict.fromkeys(str(run.seed) for run in group.runs))
        text = f"{name}: {group.label}, seed{'s' * (len(seeds) != 1)} {', '.join(seeds)}"
        yield Text.assemble((f"{letter}  ", "bold"), text)
    yield _configuration_table(comparison.configuration())
    yield _metric_table(comparison)


def _configuration_table(fields: dict[str, list[Any]]) -> RenderableType:
    if not fields:
        return Text("\nThe configurations are the same.")
    table = Table(
        title="differences in configuration", title_justify="left", box=None, padding=(0, 2, 0, 0)
    )
    for column in ("", "A", "B"):
        table.add_column(column, overflow="fold")
    for field, values in fields.items():
        table.add_row(*map(Text, (field, *map(plain, values))))
    return table


def _metric_title(comparison: Comparison) -> str:
    several = any(len(group.runs) > 1 for group in comparison.groups)
    return "percent: mean ± std; B − A by seed ± 95 % interval" if several else "percent"


def _metric_table(comparison: Comparison) -> Table:
    table = Table(title=_metric_title(comparison), title_justify="left")
    for column in ("", "A", "B", "B − A"):
        table.add_column(column, justify="right" if column else "left")
    for setting, label in comparison.settings.items():
        table.add_row(Text(label, style="dim"))
        for metric, cells in comparison._cells(setting):
            table.add_row(f"  {ALL[metric].label} {ALL[metric].arrow}", *cells)
    return table


def _difference(between: ConfidenceInterval | None, better: int) -> Text:
    """Green or red where the interval excludes 0."""
    if between is None:
        return Text(MISSING)
    if between.half is None:
        return Text(number(between.mean, sign=True))
    clear = abs(between.mean) > between.half
    style = "" if not clear else "green" if between.mean * better > 0 else "red"
    return Text(f"{number(between.mean, sign=True)} ± {between.half:.2f}", style=style)
