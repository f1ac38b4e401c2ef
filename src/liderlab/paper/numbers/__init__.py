"""The paper's numbers: every cell of its tables, and the numbers in its text. No torch needed.

`tables.csv` holds one cell per line, as printed; a note marks where the paper contradicts itself.
`claims.csv` holds the numbers of the text.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import Literal

TABLES = {
    "faa": "Table 1 (table:faa): FAA with and without LiDER",
    "regularizers-faa": "Table 2 (tab:faareg): regularization strategies, FAA",
    "poisoning": "Table 3 (tab:buff_poison): FAA after poisoning the buffer",
    "target-faa": "Table 4 (tab:faastream): current task vs buffer, FAA",
    "fixed-target": "Table 5 (tab:fix_target): fixed vs learned targets, FAA",
    "ff": "supplementary table tab:ff: FF with and without LiDER",
    "regularizers-ff": "supplementary table tab:ffreg: regularization strategies, FF",
    "target-ff": "supplementary table tab:ffstream: current task vs buffer, FF",
    "single-epoch": "supplementary table tab:onlinescenario: single-epoch setting, FAA (FF)",
}
"""Each table's name in the paper; the numbers follow the order in the text."""

AVERAGED = ("icarl", "der++", "gdumb", "er-ace")
"""The methods that give the average gains of the text: X-DER is not among them."""


@dataclass(frozen=True)
class PaperCell:
    """One printed number, in percent.

    setting: as presets name it. buffer: None for joint and finetune. addition: "" (the method
    alone), lider, lider-stream, lider-fixed, ssgd, oewc or olap. poison: None outside its table.
    """

    table: str
    setting: str
    buffer: int | None
    method: str
    addition: str
    poison: float | None
    metric: Literal["faa", "ff"]
    value: float
    note: str

    @property
    def lider(self) -> bool:
        return self.addition.startswith("lider")


@dataclass(frozen=True)
class PaperClaim:
    """A number of the text."""

    name: str
    setting: str
    method: str
    value: float
    text: str


@cache
def cells() -> tuple[PaperCell, ...]:
    """All cells, in the order of the paper.

    >>> len(cells()), cells()[0].value
    (436, 73.29)
    """
    return tuple(
        PaperCell(
            table=row["table"],
            setting=row["setting"],
            buffer=int(row["buffer"]) if row["buffer"] else None,
            method=row["method"],
            addition=row["addition"],
            poison=float(row["poison"]) if row["poison"] else None,
            metric="faa" if row["metric"] == "faa" else "ff",
            value=float(row["value"]),
            note=row["note"],
        )
        for row in _rows("tables.csv")
    )


@cache
def claims() -> tuple[PaperClaim, ...]:
    """The text's numbers about its tables."""
    return tuple(
        PaperClaim(row["name"], row["setting"], row["method"], float(row["value"]), row["text"])
        for row in _rows("claims.csv")
    )


def find_cell(
    table: str,
    setting: str,
    buffer: int | None,
    method: str,
    addition: str = "",
    metric: str = "faa",
    poison: float | None = None,
) -> PaperCell | None:
    """The cell of the paper, if it prints one.

    >>> find_cell("faa", "cifar100", 500, "er-ace", "lider").value
    38.43
    """
    return _index().get((table, setting, buffer, method, addition, metric, poison))


def average_gain(setting: str, methods: tuple[str, ...] = AVERAGED) -> float:
    """Mean FAA gain of LiDER over a setting's buffers and these methods, from Table 1.

    >>> [round(average_gain(setting), 2) for setting in ("cifar100", "miniimagenet", "cub200")]
    [2.32, 2.08, 4.36]
    """
    return fmean(
        cell.value - plain.value
        for cell in cells()
        if (cell.table, cell.setting, cell.addition) == ("faa", setting, "lider")
        and cell.method in methods
        and (plain := find_cell("faa", setting, cell.buffer, cell.method))
    )


@cache
def _index() -> dict[tuple[object, ...], PaperCell]:
    return {
        (c.table, c.setting, c.buffer, c.method, c.addition, c.metric, c.poison): c for c in cells()
    }


def _rows(name: str) -> list[dict[str, str]]:
    with (files(__package__) / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
