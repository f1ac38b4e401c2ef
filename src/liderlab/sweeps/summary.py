"""What a sweep found, as rows: one per run, and one per group of seeds."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import write_atomically
from ..functional.statistics import summarise
from ..runs.folder import RunFolder
from .scheduler import Outcome
from .sweep import Point

Row = dict[str, Any]
METRICS = {
    "faa": ("class_incremental", "faa"),
    "ff": ("class_incremental", "ff"),
    "aia": ("class_incremental", "aia"),
    "task_faa": ("task_incremental", "faa"),
    "task_ff": ("task_incremental", "ff"),
}


def run_rows(points: Sequence[Point], outcomes: Sequence[Outcome]) -> list[Row]:
    """A row per run: what it is, how it ended, its metrics (None where it has none)."""
    rows = []
    for point, outcome in zip(points, outcomes, strict=True):
        row: Row = {"run": point.plan.name, "group": point.group, "state": outcome.state}
        row |= {key: _cell(value) for key, value in point.fields.items()}
        result = RunFolder(point.plan.folder).result() if outcome.state == "done" else None
        row["seed"] = point.plan.config.seed
        row |= {name: result and result[part][key] for name, (part, key) in METRICS.items()}
        row |= {"seconds": result and result["seconds"], "error": outcome.error}
        rows.append(row)
    return rows


def group_rows(points: Sequence[Point], runs: Sequence[Row]) -> list[Row]:
    """A row per group: mean and sample standard deviation over those seeds that finished."""
    groups: dict[str, list[tuple[Point, Row]]] = {}
    for point, run in zip(points, runs, strict=True):
        groups.setdefault(point.group, []).append((point, run))
    return [_group_row(group, members) for group, members in groups.items()]


def _group_row(group: str, members: Sequence[tuple[Point, Row]]) -> Row:
    done = [run for _, run in members if run["state"] == "done"]
    row: Row = {"group": group, "runs": len(members), "done": len(done)}
    row |= {key: _cell(value) for key, value in members[0][0].fields.items()}
    for name in (*METRICS, "seconds"):
        values = [run[name] for run in done if run[name] is not None]
        found = summarise(values)
        row[f"{name}_mean"] = found.mean if found else None
        row[f"{name}_std"] = found.std if found else None
    return row


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_blank_none(rows))
    write_atomically(path, text.getvalue().encode())


def _blank_none(rows: Sequence[Mapping[str, Any]]) -> Iterable[Row]:
    return ({k: "" if v is None else v for k, v in row.items()} for row in rows)


def _cell(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else json.dumps(value)
