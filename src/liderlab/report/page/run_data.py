"""The data behind the page of one run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from ...config.diff import flat
from ...errors import UserError
from ...runs.folder import RunFolder
from ..glossary import ANYTIME, SETTINGS
from ..run_records import RunRecord
from .confusion import confusion_view
from .curves import Curve, downsample, logged_curves

ALL_PICTURES = 4_000_000  # bytes for the memory images of all runs together
LEAST_PICTURE, MOST_PICTURE = 40_000, 400_000
Tree = dict[str, Any]


def run_data(record: RunRecord, runs: int, memory: bool) -> Tree:
    """Everything about one run, small enough for a report of `runs` runs."""
    points = min(240, max(60, 6_000 // runs))
    result, on_memory = record.result or {}, record.on_memory()
    steps, config = record.lines_of("step"), record.path / "config.yaml"
    return {
        "matrix": {s: _rounded(record.matrix(s)) for s in SETTINGS},
        "onMemory": _rounded(on_memory) if on_memory else None,
        "ends": [line["step"] for line in record.lines_of("task")],
        "anytime": _anytime(record, points),
        "terms": logged_curves(steps, "terms", points),
        "readings": logged_curves(steps, "readings", points),
        "memory": _memory(record, runs) if memory else None,
        "confusion": confusion_view(result, runs),
        "keepsMemory": record.buffer is not None,
        "classes": [str(name) for name in result.get("classes", [])],
        "config": {field: as_text(value) for field, value in flat(record.config).items()},
        "versions": {k: str(v) for k, v in result.get("versions", {}).items()},
        "command": f"lider run --config {shlex.quote(str(config))} --out again",
        "yaml": config.read_text(encoding="utf-8"),
    }


def _anytime(record: RunRecord, points: int) -> Tree | None:
    """By setting, the accuracy on every task during training, and the metrics of it; None if it was
    not measured."""
    moments = record.anytime
    if not moments:
        return None
    return {
        setting: {
            "values": {metric: record.metric(setting, metric) for metric in ANYTIME},
            "curves": [
                _accuracy_curve(moments, setting, task, points)
                for task in range(len(moments[-1][setting]))
            ],
        }
        for setting in SETTINGS
    }


def _accuracy_curve(moments: Sequence[Tree], setting: str, task: int, points: int) -> Curve:
    known = [moment for moment in moments if len(moment[setting]) > task]
    steps, values = [m["step"] for m in known], [m[setting][task] for m in known]
    return downsample(steps, values, points)


def _memory(record: RunRecord, runs: int) -> Tree | None:
    """The memory in the last checkpoint; None if no checkpoint can be read."""
    from .memory_image import memory_view

    folder = RunFolder(record.path)
    if record.buffer is None or not folder.checkpoints.files():
        return None
    budget = min(MOST_PICTURE, max(LEAST_PICTURE, ALL_PICTURES // runs))
    try:
        return memory_view(folder.state()["memory"], budget, folder.memory)
    except (UserError, OSError):  # damaged, or replaced by a newer one of a running run
        return None


def _rounded(matrix: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    return [[None if value is None else round(value, 2) for value in row] for row in matrix]


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
