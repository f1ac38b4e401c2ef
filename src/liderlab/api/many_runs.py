"""`liderlab.sweep`: every combination of some values, and a table of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..config.run_options import FIELDS, field_value, run_layer
from ..errors import UserError, unknown
from ..files import writable_folder
from ..report.formatting import mean_std
from ..report.html_table import html_table
from ..report.page.html import write_report
from ..report.run_records import read_all, settings_among
from ..sweeps.dotted_names import dotted
from ..sweeps.engine import check_engine, default_workers, make_engine, threads_each
from ..sweeps.scheduler import Outcome, run_all
from ..sweeps.summary import Row, group_rows, run_rows, write_csv
from ..sweeps.sweep_file import SweepRun, check_runs, read_sweep
from .run_result import RunResult


@dataclass(frozen=True)
class SweepResult:
    """The runs of a sweep. `result[group]` lists the finished runs of a group, one per seed.

    folder: the sweep's. rows: one per run. summary: one per group of seeds, mean and standard
    deviation of every metric. left_out: messages about runs that report.html had to leave out.
    """

    folder: Path
    rows: list[Row]
    summary: list[Row]
    left_out: list[str]

    @property
    def finished(self) -> list[Row]:
        return [row for row in self.rows if row["state"] == "done"]

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row["state"] == "failed"]

    @property
    def groups(self) -> list[str]:
        """The names of the groups: the values that vary, without the seed."""
        return [row["group"] for row in self.summary]

    @cached_property
    def runs(self) -> list[RunResult]:
        """The results of the finished runs, in the order of the sweep."""
        return [self._result(row) for row in self.finished]

    def __getitem__(self, group: str) -> list[RunResult]:
        if group not in self.groups:
            raise unknown("group", str(group), self.groups)
        return [self._result(row) for row in self.finished if row["group"] == group]

    def _result(self, row: Row) -> RunResult:
        return RunResult.read(self.folder / "runs" / row["run"])

    def __repr__(self) -> str:
        done = f"{len(self.finished)} of {len(self.rows)} runs done"
        return f"<sweep in {self.folder}: {done}; groups {', '.join(self.groups)}>"

    def _repr_html_(self) -> str:
        rows = [
            [
                row["group"],
                *(mean_std(row[f"{name}_mean"], row[f"{name}_std"]) for name in ("faa", "ff")),
                f"{row['done']}/{row['runs']}",
            ]
            for row in self.summary
        ]
        errors = "".join(f"; {row['run']} failed: {row['error']}" for row in self.failed[:10])
        settings = settings_among(row["setting"] for row in self.finished)
        title = f"{self.folder}{f', {settings}' if settings else ''}{errors}"
        return html_table(title, ["", "FAA ↑ (%)", "FF ↓ (%)", "runs"], rows)


def sweep(
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    base: Mapping[str, Any] | None = None,
    points: Sequence[Mapping[str, Any]] | None = None,
    presets: Sequence[str] | None = None,
    out: str | Path = "runs/sweep",
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    slurm: Sequence[str] | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> SweepResult:
    """Run every combination of values, as `lider sweep` does: several at a time.

    `sweep({"method": ["er", "er-ace"], "buffer": [100, 200]}, seeds=3, base={"epochs": 2})`.
    Names are keywords of `liderlab.run` or dotted fields of the configuration. Finished runs are
    skipped, unfinished ones go on. Scripts need `if __name__ == "__main__":`, because the runs
    are processes of their own.

    Args:
        grid: Values of each name; there is a run for every combination.
        seeds: A number of seeds, or a list of them.
        base: Values that all runs share.
        points: Sets of values to vary together; `name` names one:
            `[{"name": "plain"}, {"name": "lider", "lider": True}]`.
        presets: Names or patterns of presets.
        out: The sweep's folder: runs/, summary.csv, runs.csv and report.html are written to it.
        workers: Runs at a time; by default one per core, or per GPU.
        engine: "local", "ray" (with address) or "slurm" (with its parameters, "KEY=VALUE").
        retry_failed: Also go on with runs that failed earlier.
        progress: Show a live table, a bar in a notebook, or lines elsewhere.
    """
    check_engine(engine, workers, address, slurm)
    out = Path(out)
    tree = _tree(grid=grid, seeds=seeds, base=base, points=points, presets=presets)
    runs, workers = plan_sweep(tree, out, workers, engine)
    writable_folder(out)
    chosen = make_engine(engine, workers, address, slurm, out)
    with _display(runs) if progress else nullcontext() as display:
        plans = [run.plan for run in runs]
        outcomes = run_all(plans, engine=chosen, retry_failed=retry_failed, watch=display)
    return summarise_sweep(runs, outcomes, out)


def plan_sweep(
    tree: Mapping[str, Any], out: Path, workers: int | None, engine: str
) -> tuple[list[SweepRun], int | None]:
    """The runs of a sweep's file, checked, and the number of workers."""
    base = tree.get("base")
    device = base.get("device") if isinstance(base, Mapping) else None
    if engine == "local":
        workers = workers or default_workers(device)
    runs = read_sweep(tree, out, threads_each(engine, workers or 1))
    check_runs(runs, None if engine == "local" else "cpu")
    return runs, workers


def summarise_sweep(
    runs: Sequence[SweepRun], outcomes: Sequence[Outcome], out: Path
) -> SweepResult:
    """Write runs.csv, summary.csv and, if any run has finished, report.html."""
    rows = run_rows(runs, outcomes)
    groups = group_rows(runs, rows)
    write_csv(out / "runs.csv", rows)
    write_csv(out / "summary.csv", groups)
    left_out: list[str] = []
    if done := [
        run.plan.folder for run, row in zip(runs, rows, strict=True) if row["state"] == "done"
    ]:
        records, left_out = read_all(done)
        page, title = out / "report.html", f"The sweep {out.name}"
        left_out += write_report(records, page, title=title, memory=False)
    return SweepResult(out, rows, groups, left_out)


def _tree(**parts: Any) -> dict[str, Any]:
    """The arguments as a sweep's file, with fields in the place of keywords."""
    tree = {name: value for name, value in parts.items() if value is not None}
    for name in ("points", "presets", "seeds"):
        if isinstance(tree.get(name), (tuple, range)):
            tree[name] = list(tree[name])
    for name in ("base", "grid"):
        if not isinstance(tree.get(name, {}), Mapping):
            raise UserError(f"{name} must be a dict of names and values, not {tree[name]!r}")
    if "base" in tree:
        tree["base"] = _fields(tree["base"])
    if isinstance(tree.get("points"), list):
        tree["points"] = [
            _fields(point) if isinstance(point, Mapping) else point for point in tree["points"]
        ]
    if "grid" in tree:
        tree["grid"] = dict(_axis(name, values) for name, values in tree["grid"].items())
    return tree


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted fields for keywords of `liderlab.run`; fields stay.

    >>> _fields({"benchmark": "synthetic", "tasks": 2, "method": "er", "lider": True})
    {'benchmark.name': 'synthetic', 'method': 'er', 'regularizers.lider': {}, 'benchmark.tasks': 2}
    """
    layer = run_layer({name: value for name, value in values.items() if name in FIELDS})
    others = {
        f"{name}.name" if isinstance(value, str) and name in layer else name: value
        for name, value in values.items()
        if name not in FIELDS
    }
    return dotted(others) | dotted(layer)


def _axis(name: str, values: Any) -> tuple[str, Any]:
    """A name of the grid as a field, with its values."""
    if not isinstance(values, (list, tuple, range)):
        return name, values  # refused with the sweep's own message
    if name not in FIELDS:
        return name, list(values)
    found = [None if value is None else field_value(name, value) for value in values]
    return FIELDS[name], found


def _display(runs: Sequence[SweepRun]) -> Any:
    from ..report.terminal.console import SafeConsole
    from ..report.terminal.sweep_progress import SweepDisplay

    console = SafeConsole(stderr=True)
    return SweepDisplay(console, [run.plan for run in runs])
