"""The matrix: regularisers on methods, tuned alike, then compared on test images."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...config.schema import RunConfig
from ...functional.statistics import paired_difference, summarise
from ...runs.folder import RunFolder
from ...runs.planned_run import PlannedRun
from .case_runs import plan_run, run_name
from .cases import STAND_IN, Request
from .matrix_cells import (
    VALIDATION,
    Cell,
    Try,
    best_of,
    cells_of,
    command_of,
    final_config,
    tries_of,
    tuning_config,
    untuned_rate,
)
from .measured_values import measured_once
from .step_cost import relative_cost
from .study_definition import Executed, Findings, Row, RunAll, Study, TableColumn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Result = dict[str, Any]
COLUMNS = [
    TableColumn("method", ("label",)),
    TableColumn("chosen", ("chosen",)),
    TableColumn("FAA ↑", ("faa", "faa_std")),
    TableColumn("ΔFAA [95 %]", ("gain", "gain_low", "gain_high"), sign=True),
    TableColumn("AIA ↑", ("aia",)),
    TableColumn("FF ↓", ("ff",)),
    TableColumn("memory − test", ("memory_gap",)),
    TableColumn("worst case ↑", ("wc_acc",)),
    TableColumn("cost", ("cost",)),
    TableColumn("steps", ("steps",), digits=0),
    TableColumn("seeds", ("seeds",), digits=0),
]


def execute(request: Request, out: Path, run_all: RunAll) -> Executed:
    """Tune every cell, run the best try of each on the test images, and compare."""
    cells = cells_of(request)
    rates = {cell.method: untuned_rate(cell.method, request) for cell in cells}
    for cell in cells:  # before the first run
        for attempt in tries_of(cell, rates[cell.method], request):
            _check(tuning_config(attempt, request))
    alone = [cell for cell in cells if not cell.regularizers]
    attempts, best, failed = tune(alone, rates, request, out, run_all)
    rates |= {cell.method: attempt.rate for cell, attempt in best.items()}
    others = [cell for cell in cells if cell.regularizers]
    more_attempts, more_best, more_failed = tune(others, rates, request, out, run_all)
    attempts, best, failed = attempts | more_attempts, best | more_best, failed | more_failed
    tried = {t: _result(plan) for t, plan in attempts.items() if plan.name not in failed}
    cost = step_costs(best, request, out)
    steps = allowed_steps(best, cost, request)
    tests = {
        (cell, seed): plan_run(final_config(t, request, seed, steps[cell]), out)
        for cell, t in best.items()
        for seed in range(request.seeds)
    }
    failed |= run_all(list(tests.values()))
    results = {key: _result(plan) for key, plan in tests.items() if plan.name not in failed}
    findings = findings_of(best, results, cost, request)
    findings.data["tries"] = [
        {"cell": t.cell.label, "factor": t.factor, "run": attempts[t].name,
         "validation_faa": r["class_incremental"]["faa"], "chosen": best[t.cell] == t}
        for t, r in tried.items()
    ]  # fmt: skip
    return Executed(findings, [*attempts.values(), *tests.values()], failed)


def tune(
    cells: Sequence[Cell], rates: Mapping[str, float], request: Request, out: Path, run_all: RunAll
) -> tuple[dict[Try, PlannedRun], dict[Cell, Try], dict[str, str]]:
    """All tries, the best one of each cell, and failed runs. rates: by method."""
    tries = [attempt for cell in cells for attempt in tries_of(cell, rates[cell.method], request)]
    plans = {attempt: plan_run(tuning_config(attempt, request), out) for attempt in tries}
    failed = dict(run_all(list(plans.values())))
    best: dict[Cell, Try] = {}
    for cell in cells:
        ended = [t for t in tries if t.cell == cell and plans[t].name not in failed]
        if ended:
            best[cell] = best_of([(t, READ["faa"](_result(plans[t])) or 0.0) for t in ended])
    return plans, best, failed


def _check(config: RunConfig) -> None:
    """Refuse options out of range before the first run."""
    from ...regularizers import REGULARIZERS
    from ...runs.build import completed

    for name, options in completed(config).regularizers.items():
        REGULARIZERS.load(name)(**options)


def _result(plan: PlannedRun) -> Result:
    return RunFolder(plan.folder).result()


def step_costs(best: Mapping[Cell, Try], request: Request, out: Path) -> dict[Cell, float]:
    """The time of a step of each cell over that of its method alone. Kept in files, so that a
    study that goes on gives each cell the same budget."""
    if request.threads is not None:
        import torch

        torch.set_num_threads(request.threads)
    found: dict[Cell, float] = {}
    for cell, attempt in best.items():
        alone = best.get(Cell(cell.method))
        if alone == attempt:
            found[cell] = 1.0
        elif alone is not None:
            found[cell] = _step_cost(attempt, alone, request, out / "matrix" / "measured")
    return found


def _step_cost(attempt: Try, alone: Try, request: Request, folder: Path) -> float:
    own, plain = final_config(attempt, request, 0), final_config(alone, request, 0)
    path = folder / f"{run_name(own)}.json"
    cost: float = measured_once(path, lambda: {"cost": relative_cost(own, plain)})["cost"]
    return cost


def allowed_steps(
    best: Mapping[Cell, Try], cost: Mapping[Cell, float], request: Request
) -> dict[Cell, int | None]:
    """The steps of each cell, so that all cells of a method cost what the method alone costs;
    None: all steps."""
    if request.budget == "equal-steps":
        return dict.fromkeys(best)
    configs = {cell: final_config(attempt, request, 0) for cell, attempt in best.items()}
    if request.budget == "equal-passes":
        from .pass_count import rows_per_step

        rows = {cell: rows_per_step(config) for cell, config in configs.items()}
        cost = {cell: own / rows.get(Cell(cell.method), own) for cell, own in rows.items()}
    return {
        cell: math.ceil(planned_steps(config) / cost[cell]) if cost.get(cell, 1) > 1 else None
        for cell, config in configs.items()
    }


def planned_steps(config: RunConfig) -> int:
    from ...runs.build import build, completed

    return build(completed(config)).loop.planned_steps()


def memory_gap(result: Result) -> float | None:
    """Final accuracy on stored samples minus that on test images, the mean over tasks that have
    stored samples: how far the memory is overfitted."""
    values = result["class_incremental"]
    pairs = zip(values["memory_accuracy"][-1], values["accuracy_matrix"][-1], strict=True)
    gaps = [memory - test for memory, test in pairs if memory is not None and test is not None]
    return fmean(gaps) if gaps else None


def findings_of(
    best: Mapping[Cell, Try],
    results: Mapping[tuple[Cell, int], Result],
    cost: Mapping[Cell, float],
    request: Request,
) -> Findings:
    def values(cell: Cell, read: Callable[[Result], float | None]) -> dict[int, float | None]:
        return {seed: read(r) for (own, seed), r in results.items() if own == cell}

    rows: list[Row] = []
    for cell, attempt in best.items():
        mine = [result for (own, _), result in results.items() if own == cell]
        if not mine:
            continue
        row: Row = {"label": cell.label, "method": cell.method, "column": cell.column}
        for name, read in READ.items():
            summary = summarise([v for result in mine if (v := read(result)) is not None])
            row[name] = summary.mean if summary else None
            row[f"{name}_std"] = summary.std if summary else None
        alone = Cell(cell.method)
        found = paired_difference(values(cell, READ["faa"]), values(alone, READ["faa"]))
        if cell.regularizers and found:
            row |= {"gain": found.mean, "gain_low": found.low, "gain_high": found.high}
            row["gain_p"] = found.p
        chosen = _chosen(cell, mine[0]["config"])
        row |= {"chosen": chosen, "factor": attempt.factor, "cost": cost.get(cell)}
        row |= {"steps": mine[0]["steps"], "seeds": len(mine)}
        rows.append(row | {"command": command_of(cell, request)})
    return Findings(rows, COLUMNS, _notes(request))


READ: dict[str, Callable[[Result], float | None]] = {
    "faa": lambda result: result["class_incremental"]["faa"],
    "aia": lambda result: result["class_incremental"]["aia"],
    "ff": lambda result: result["class_incremental"]["ff"],
    "wc_acc": lambda result: result["class_incremental"].get("wc_acc"),
    "memory_gap": memory_gap,
}


def _chosen(cell: Cell, config: Mapping[str, Any]) -> str:
    """The tuned values in words."""
    from .matrix_cells import strengths

    if not cell.regularizers:
        return f"lr {config['training']['lr']:.3g}"
    given = config["regularizers"]
    parts = [(option, given[n][option]) for n in cell.regularizers for option in strengths(n, 1)]
    return ", ".join(f"{option} {value:.3g}" for option, value in parts)


def _notes(request: Request) -> list[str]:
    budget = {
        "equal-steps": "All cells of a method train for the same number of steps.",
        "equal-passes": "Cells whose steps let more rows pass forward through networks than the "
        "method's alone take fewer steps: as many rows pass in all.",
        "equal-seconds": "Cells whose steps take longer than the method's alone take fewer steps: "
        "all cells of a method train equally long. Work at the ends of tasks is not counted.",
    }[request.budget]
    tries = "1 try" if request.tries == 1 else f"{request.tries} tries"
    small = (
        f"Stand-in: run on {request.benchmark or STAND_IN} at smoke scale: it proves that the code "
        "runs, nothing about methods and regularisers."
    )
    return [
        *([small] if request.smoke else []),
        f"Every cell had {tries} on {VALIDATION:.0%} of the training images, with "
        "one seed, on the same logarithmic grid: first the method alone around the untuned "
        "learning rate, then the regularisers around their default strengths, at the method's "
        "best rate. Test seeds are others.",
        budget,
        "Cost: the time of a training step over that of the method alone, both taking turns.",
    ]


def show(findings: Findings) -> Figure:
    from .charts import gains

    return gains([row for row in findings.rows if "gain" in row])


STUDY = Study(
    title="Regularisers on methods, tuned alike",
    paper="beyond the paper",
    execute=execute,
    show=show,
)
