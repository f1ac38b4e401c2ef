"""The ledger's cells by name, and the case of each. No torch needed.

`faa/cifar100/500/er-ace+lider`: table, setting, buffer (none for joint and finetune), method and
addition. Poisoning appends `/p0.1`, and tables that print both metrics append `/faa` or `/ff`. Our
own cells are in the table `ours`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import cast

from ...errors import UserError
from .. import numbers
from ..studies.cases import Addition, Case
from .campaign import controlled
from .record import variant

OURS = "ours"
BOTH_METRICS = (OURS, "single-epoch")  # tables that print FAA and FF


def cell_name(table: str, case: Case, metric: str, poison: float | None = None) -> str:
    """The name of a cell.

    >>> cell_name("faa", Case("cifar100", 500, "er-ace", "lider"), "faa")
    'faa/cifar100/500/er-ace+lider'
    >>> cell_name("ours", Case("cifar100", 500, "er-ace", "lider", "controlled"), "ff")
    'ours/cifar100/500/er-ace+lider/controlled/ff'
    """
    parts = [table, case.setting, str(case.buffer or ""), variant(case)]
    parts += ["controlled"] if case.column == "controlled" else []
    parts += [] if poison is None else [f"p{poison:g}"]
    parts += [metric] if table in BOTH_METRICS else []
    return "/".join(part for part in parts if part)


def name_of(cell: numbers.PaperCell) -> str:
    return cell_name(cell.table, case_of(cell), cell.metric, cell.poison)


def case_of(cell: numbers.PaperCell) -> Case:
    """The run behind a printed number, with the values that the paper prints for it.

    >>> case_of(numbers.find_cell("faa", "cifar100", 500, "er-ace", "lider")).label
    'ER-ACE + LiDER'
    """
    addition = cast(Addition, cell.addition)
    return Case(cell.setting, cell.buffer, cell.method, addition, poison=cell.poison or 0.0)


def cases_of_the_paper() -> list[Case]:
    """Every run that a cell of the paper needs, once, and its controlled form if that differs."""
    found: dict[Case, None] = {}
    for cell in numbers.cells():
        case = case_of(cell)
        found |= dict.fromkeys((case, controlled(case) if cell.lider else case))
    return list(found)


def unknown_cell(name: str, names: Iterable[str]) -> UserError:
    """The error for a wrong name, with near matches: there are too many cells to list them."""
    near = get_close_matches(name, list(names), n=3, cutoff=0.5)
    meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return UserError(f"there is no cell {name!r}: {meant}lider ledger cells lists all")
