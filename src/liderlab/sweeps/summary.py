"""Results of a sweep as rows: one per run, and one per group of seeds."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import write_atomically
from ..functional.statistics import summarise
from ..runs.folder import RunFolder
from ..runs.result_schema import setting_of
from .scheduler import Outcome
from .sweep_file import SweepRun

Row = dict[str, Any]
METRICS = {
    "faa": ("class_incremental", "faa"),
    "ff": ("class_incremental", "ff"),
    "aia": ("class_incremental", "aia"),
    "task_faa": ("task_incremental", "faa"),
    "task_ff": ("task_incremental", "ff"),
}


def run_rows(runs: Sequence[SweepRun], outcomes: Sequence[Outcome]) -> list[Row]:
    """A row per run: its values, how it ended, its metrics (None for a run without a result)."""
    rows = []
    for run, outcome in zip(runs, outcomes, strict=True):
        row: Row = {"run": run.plan.name, "group": run.group, "state": outcome.state}
        row |= {key: _cell(value) for key, value in run.fields.items()}
        result = RunFolder(run.plan.folder).result() if outcome.state == "done" else None
        row["seed"] = run.plan.config.seed
        row["setting"] = result and setting_of(result)
        row |= {name: result and result[part][key] for name, (part, key) in METRICS.items()}
        row |= {"seconds": result and result["seconds"], "error": outcome.error}
        rows.append(row)
    return rows


def group_rows(runs: Sequence[SweepRun], rows: Sequence[Row]) -> list[Row]:
    """A row per group: mean and sample standard deviation over the seeds that finished."""
    groups: dict[str, list[tuple[SweepRun, Row]]] = {}
    for run, row in zip(runs, rows, strict=True):
        groups.setdefault(run.group, []).append((run, row))
    return [_group_row(group, members) for group, members in groups.items()]


def _group_row(group: str, members: Sequence[tuple[SweepRun, Row]]) -> Row:
    done = [row for _, row in members if row["state"] == "done"]
    row: Row = {"group": group, "runs": len(members), "done": len(done)}
    row |= {key: _cell(value) for key, value in members[0][0].fields.items()}
    row["setting"] = done[0]["setting"] if done else None
    for name in (*METRICS, "seconds"):
        found = summarise([run[name] for run in done if run[name] is not None])
        row[f"{name}_mean"] = found.mean if found else None
        row[f"{name}_std"] = found.std if found else None
    return row


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())


def _cell(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else json.dumps(value)
