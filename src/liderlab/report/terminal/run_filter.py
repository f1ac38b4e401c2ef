"""Conditions that select runs: `lider runs --where 'faa>70'`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...config.diff import flat
from ...errors import UserError, unknown
from ..run_records import RunRecord

BOOLEANS = {"yes": True, "true": True, "no": False, "false": False}
RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Condition:
    """A comparison of one field of a run with a value.

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

    def holds(self, fields: dict[str, Any]) -> bool:
        """False for a run without the field: it may be another method's option."""
        if self.field not in fields:
            return False
        found, relation = fields[self.field], RELATIONS[self.relation]
        if found is None:
            return (self.relation, self.value) == ("=", "null")
        if self.value == "null":
            return self.relation == "!="
        if isinstance(found, bool):
            if self.value not in BOOLEANS:
                raise UserError(f"{self.field} is yes or no, not {self.value!r}")
            return relation(found, BOOLEANS[self.value])
        if isinstance(found, int | float):
            try:
                return relation(float(found), float(self.value))
            except ValueError:
                raise UserError(f"{self.field} is a number, not {self.value!r}") from None
        if isinstance(found, list) and self.relation in ("=", "!="):
            return (self.value in map(str, found)) == (self.relation == "=")
        return relation(str(found), self.value)


def select(records: Sequence[RunRecord], conditions: Sequence[Condition]) -> list[RunRecord]:
    """The runs that fulfil all conditions; refuses a field that no run has."""
    fields = [flat(record.config) | record.facts() for record in records]
    known = {field for run in fields for field in run if not field.startswith("scale.changes")}
    for condition in conditions:
        if condition.field not in known:
            raise unknown("field", condition.field, sorted(known))
    return [
        record
        for record, run in zip(records, fields, strict=True)
        if all(condition.holds(run) for condition in conditions)
    ]
