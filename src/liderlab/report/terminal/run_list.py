"""Runs as a list in the terminal, and which of them to list."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from ...config.diff import flat
from ...errors import UserError, unknown
from ..definitions import METRICS
from ..run_records import SETTINGS, Record

STATE_STYLES = {"finished": "green", "running": "cyan", "stopped": "yellow"}
TRUTH = {"yes": True, "true": True, "no": False, "false": False}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


def facts(record: Record) -> dict[str, Any]:
    """A run in short, as plain values."""
    return {
        "name": record.name,
        "path": str(record.path),
        "state": record.state,
        "benchmark": record.benchmark,
        "method": record.method,
        "regularizers": record.regularizers,
        "lider": "lider" in record.regularizers,
        "backbone": record.config["backbone"]["name"],
        "buffer": record.buffer,
        "seed": record.seed,
        "scale": record.scale,
        "seconds": (record.result or {}).get("seconds"),
        **{metric: record.metric(SETTINGS[0], metric) for metric in METRICS},
    }


@dataclass(frozen=True)
class Condition:
    """One thing that a run must fulfil.

    >>> Condition.parse("training.lr <= 0.1")
    Condition(field='training.lr', relation='<=', value='0.1')
    """

    field: str
    relation: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        match = re.fullmatch(r"\s*([^=<>!\s]+)\s*(!=|<=|>=|==?|<|>)\s*(.*?)\s*", text)
        if not match:
            raise UserError(f"expected a condition like method=er-ace or faa>70, but got {text!r}")
        return cls(match[1], match[2].replace("==", "="), match[3])

    def holds(self, record: Record) -> bool:
        """False where the run has no such field: it may be another method's option."""
        fields = flat(record.config) | facts(record)
        if (found := fields.get(self.field)) is None:
            return (self.relation, self.value) == ("=", "null") and self.field in fields
        return self._compare(found)

    def _compare(self, found: Any) -> bool:
        relation = COMPARE[self.relation]
        if self.value == "null":
            return self.relation == "!="
        if isinstance(found, bool):
            if self.value not in TRUTH:
                raise UserError(f"{self.field} is yes or no, not {self.value!r}")
            return relation(found, TRUTH[self.value])
        if isinstance(found, int | float):
            try:
                return relation(float(found), float(self.value))
            except ValueError:
                raise UserError(f"{self.field} is a number, not {self.value!r}") from None
        if isinstance(found, list) and self.relation in ("=", "!="):
            return (self.value in map(str, found)) == (self.relation == "=")
        return relation(str(found), self.value)


def select(records: Sequence[Record], conditions: Sequence[Condition]) -> list[Record]:
    """Those that fulfil all conditions; a field that no run has is a mistake."""
    fields = {field for record in records for field in flat(record.config) | facts(record)}
    for condition in conditions:
        if condition.field not in fields:
            allowed = sorted(field for field in fields if not field.startswith("scale.changes"))
            raise unknown("field", condition.field, allowed)
    return [record for record in records if all(c.holds(record) for c in conditions)]


def listing(records: Sequence[Record]) -> Table:
    """One line per run, class-incremental; it fits in 80 columns."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True)
    table.add_column("run", overflow="ellipsis", no_wrap=True, ratio=3)
    table.add_column("method", overflow="ellipsis", no_wrap=True, ratio=2, style="bold")
    several = len({record.benchmark for record in records}) > 1
    if several:
        table.add_column("benchmark", overflow="ellipsis", no_wrap=True, ratio=2)
    for name, width in (("buffer", 6), ("seed", 4), ("FAA", 6), ("FF", 6)):
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    table.add_column("state", no_wrap=True, min_width=8)
    for record in records:
        cells = [Text(record.name), Text(record.label)]
        cells += [Text(record.benchmark)] if several else []
        buffer = "–" if record.buffer is None else str(record.buffer)
        cells += [Text(buffer), Text(str(record.seed))]
        cells += [Text(number(record.metric(SETTINGS[0], metric))) for metric in ("faa", "ff")]
        table.add_row(*cells, Text(record.state, style=STATE_STYLES[record.state]))
    return table


def number(value: float | None) -> str:
    """Two digits, no minus before a zero; a dash for None.

    >>> number(-0.001), number(None)
    ('0.00', '–')
    """
    return "–" if value is None else f"{round(value, 2) + 0.0:.2f}"
