"""Tables of the available methods, presets, studies and data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from ..formatting import duration, plain

if TYPE_CHECKING:
    from ...config.presets import Preset
    from ...paper.studies.cost_estimate import StudyCost
    from ...registry import Registry

FACTS = {"methods": ("policy", "year"), "regularizers": ("year",), "benchmarks": ("tasks",)}


def _table(**settings: Any) -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), **settings)


def registry_table(kind: str, registry: Registry) -> Table:
    """One row per name, with the facts of its kind, and the origin of names from outside."""
    table = _table(title=kind, title_justify="left")
    table.add_column("name", style="bold", no_wrap=True)
    facts = FACTS.get(kind, ())
    for fact in facts:
        table.add_column("memory" if fact == "policy" else fact)
    table.add_column("")
    outside = any(entry.origin for entry in registry.values())
    if outside:
        table.add_column("from", overflow="fold")
    for name, entry in registry.items():
        known = {} if entry.installed else registry.facts(name)  # lists import no other package
        cells = [plain(known.get(fact)) for fact in facts]
        paper = f" ({known['paper']})" if known.get("paper") else ""
        origin = [escape(entry.origin or "")] if outside else []
        table.add_row(name, *cells, escape(entry.summary + paper), *origin)
    return table


def preset_table(presets: Sequence[Preset]) -> Table:
    """One row per preset: learning rate, weights of LiDER, and whether the paper prints it."""
    table = _table()
    for column in ("preset", "lr", "LiDER α, β", "paper"):
        table.add_column(column, overflow="fold")  # the longest rows take 80 columns
    for preset in presets:
        lider = preset.config["regularizers"].get("lider")
        weights = f"{lider['alpha']}, {lider['beta']}" if lider else "–"
        lr = str(preset.config["training"].get("lr", "–"))
        table.add_row(preset.name, lr, weights, "yes" if preset.printed else "no")
    return table


def study_table(costs: Mapping[str, Mapping[str, StudyCost]]) -> Table:
    """One row per study: its number of runs, and their time, at every scale."""
    from ...config.scale import SCALES
    from ...paper.studies import STUDIES

    table = _table()
    table.add_column("study", style="bold", no_wrap=True)
    for scale in SCALES:
        table.add_column(scale, justify="right", no_wrap=True)
    table.add_column("")
    for name, cost in costs.items():
        cells = [f"{part.runs} in {duration(part.seconds)}" for part in cost.values()]
        without = "–" if STUDIES[name].facts["open_ended"] else "seconds"
        cells = cells if cost["paper"].runs else [without] * len(SCALES)
        table.add_row(name, *cells, STUDIES[name].summary)
    return table


def data_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One row per data set: whether it is here, its download, its images and its licence."""
    table = _table()
    for column in ("name", "here", "download", "images", "licence"):
        table.add_column(column, style="bold" if column == "name" else None)
    for row in rows:
        here = "no"
        if row["found"]:
            here = f"{'yes' if row['complete'] else 'in part'}, {_size(row['bytes'])}"
        download = _size(row["download_bytes"]) if row["download_bytes"] else "none: --from"
        table.add_row(row["name"], here, download, row["images"], row["licence"])
    return table


def _size(number: int) -> str:
    """
    >>> _size(169_001_437), _size(4_542)
    ('169 MB', '4.54 kB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} B"
