"""Numbers that stand beside a row of the report: the paper's and the reproduction ledger's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...config.presets import presets
from ...paper.ledger.measured_cases import measured_cases, spread
from ...paper.ledger.record import LedgerRecord, read_records
from ...paper.numbers import cells
from ..seed_groups import SeedGroup, experiment_key

PaperKey = tuple[str, int | None, str, bool]
PaperNumbers = Mapping[PaperKey, Mapping[str, float]]
"""A paper's results: (setting, buffer, method, with LiDER) → metric → number. The setting is that
of a preset (`cifar100-pretrained`) or a benchmark's name; the buffer is None for a method without
memory."""
TABLES = ("faa", "ff", "single-epoch")


def paper_numbers() -> PaperNumbers:
    """Every method with and without LiDER, as the main tables of LiDER's paper print it.

    >>> paper_numbers()["cifar100", 500, "er-ace", True]
    {'faa': 38.43, 'ff': 36.0}
    """
    numbers: dict[PaperKey, dict[str, float]] = {}
    for cell in cells():
        if cell.table in TABLES and cell.addition in ("", "lider"):
            key = (cell.setting, cell.buffer, cell.method, cell.lider)
            numbers.setdefault(key, {})[cell.metric] = cell.value
    return numbers


def in_paper(group: SeedGroup, paper: PaperNumbers) -> dict[str, float]:
    """The paper's numbers for this group, by metric; {} if it has additions other than LiDER."""
    run = group.first
    if set(run.regularizers) - {"lider"} or run.config["memory"].get("poison"):
        return {}
    preset = presets().get(str(run.config.get("preset")))
    setting = preset.setting if preset else run.benchmark
    return dict(paper.get((setting, run.buffer, run.method, "lider" in run.regularizers), {}))


def in_ledger(
    groups: Iterable[SeedGroup], records: Iterable[LedgerRecord] | None = None
) -> list[dict[str, Any]]:
    """For each group: mean, std and n of FAA in the ledger for the same configuration, or {}.

    records: those that come with the package by default, read if a run started from a preset.
    """
    rows = list(groups)
    if records is None:
        records = read_records() if any(row.first.config.get("preset") for row in rows) else []
    known = {
        experiment_key(case.records[0].config): spread(values)
        for case in measured_cases(list(records))
        if (values := case.values("faa"))
    }
    found = [known.get(experiment_key(row.first.config)) for row in rows]
    return [{k: one[k] for k in ("mean", "std", "n")} if one else {} for one in found]
