"""Deviations of a run from the row that the paper prints. No torch needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from ...config.diff import flat
from ...config.lider_forms import PAPER
from ..studies.cases import Case, preset_of
from .record import LedgerRecord

Status = Literal["paper scale", "smaller scale", "not measured"]
STATUSES: dict[Status, str] = {
    "paper scale": "measured with the paper's network, data and schedule",
    "smaller scale": "measured with a smaller network or a shorter schedule, as stated",
    "not measured": "not measured",
}
WORDS = {
    "training.epochs": "epochs",
    "training.milestones": "milestones",
    "training.lr": "lr",
    "backbone.width": "width",
    "backbone.name": "backbone",
    "benchmark.name": "benchmark",
    "benchmark.train_per_class": "training images per class",
    "benchmark.test_per_class": "test images per class",
    "memory.size": "buffer",
    "method.fit_epochs": "passes over the memory",
    "method.alpha": "the method's α",
    "method.beta": "the method's β",
    "regularizers.lider.estimator": "estimator",
    "regularizers.lider.alpha": "LiDER's α",
    "regularizers.lider.beta": "LiDER's β",
}
FORM = ("estimator", "reading", "weights")
"""Options of LiDER's form in which a record may deviate; the others belong to its case."""
Deviations = dict[str, dict[str, Any]]
"""By dotted name: {"from": the paper's value, "to": ours}; None: no limit, or no value."""


def deviations_from_paper(record: LedgerRecord) -> Deviations:
    """The changes of the scale, and every other value that is not the paper's for the case."""
    preset = preset_of(replace(record.case, column="tuned"))
    row = flat(preset.config)
    if preset.lider:  # it names the form paper
        row |= {f"regularizers.lider.{name}": PAPER[name] for name in FORM}
    row["memory.size"] = record.case.buffer if record.case.buffer else row.get("memory.size")
    ours = flat(record.config)
    changes = (record.config.get("scale") or {}).get("changes") or {}
    found: Deviations = {key: dict(change) for key, change in changes.items()}
    for key, value in row.items():
        if key not in found and value is not None and ours.get(key, value) != value:
            found[key] = {"from": value, "to": ours[key]}
    return found


def status_of(record: LedgerRecord) -> Status:
    """ "paper scale" if nothing was made smaller; another learning rate is only a deviation."""
    changes = (record.config.get("scale") or {}).get("changes")
    return "smaller scale" if changes else "paper scale"


def describe_deviations(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The deviations in words.

    >>> changes = {"training.epochs": {"from": 50, "to": 5}, "training.lr": {"from": 0.1, "to": 1}}
    >>> describe_deviations(changes)
    'epochs 5 instead of 50, lr 1 instead of 0.1'
    """
    return ", ".join(
        f"{WORDS.get(key, key)} {_value(change['to'])} instead of {_value(change['from'])}"
        for key, change in found.items()
    )


def _value(value: Any) -> str:
    if value is None:
        return "all"
    return "/".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def is_exact(case: Case) -> bool:
    """Whether its values are those that the paper prints, at any scale."""
    return case.column == "tuned" and case == case.as_usual
