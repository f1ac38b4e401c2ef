"""What the reproduction ledger has measured for the very configuration of a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ...paper.ledger.ledger_document import measured, spread
from ...paper.ledger.record import LedgerRecord, read_records
from ..run_records import essence
from .run_groups import Group

Tree = dict[str, Any]


def in_ledger(groups: Iterable[Group], records: Iterable[LedgerRecord] | None = None) -> list[Tree]:
    """For each row: FAA's mean, std and number of seeds in the ledger; nothing where it has none.

    records: those that come with the package by default, read if a run started from a preset.
    """
    rows = list(groups)
    if records is None:
        records = read_records() if any(row.first.config.get("preset") for row in rows) else []
    known = {
        _key(group.records[0].config): spread(values)
        for group in measured(list(records))
        if (values := group.values("faa"))
    }
    found = [known.get(_key(row.first.config)) for row in rows]
    return [{k: one[k] for k in ("mean", "std", "n")} if one else {} for one in found]


def _key(config: Mapping[str, Any]) -> str:
    return json.dumps(essence(config), sort_keys=True, default=str)
