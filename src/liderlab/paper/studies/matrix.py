"""The matrix: regularisers on methods, tuned alike, then compared on test images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...config.schema import RunConfig
from ...functional.statistics import paired_difference, summarise
from ...runs.folder import RunFolder
from ...runs.planned_run import PlannedRun
from .case_runs import plan_run
from .cases import STAND_IN, Request
from .matrix_cells import (
    VALIDATION,
    Cell,
    Try,
    best_of,
    cells_of,
    command_of,
    test_config,
    tries_of,
    tuning_config,
    untuned_rate,
)
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
    TableColumn("epochs", ("epochs",), digits=0),
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
    share = shares(best, {cell: tried[t] for cell, t in best.items()}, request)
    tests = {
        (cell, seed): plan_run(test_config(t, request, seed, share[cell]), out)
        for cell, t in best.items()
        for seed in range(request.seeds)
    }
    failed |= run_all(list(tests.values()))
    results = {key: _result(plan) for key, plan in tests.items() if plan.name not in failed}
    findings = findings_of(best, results, request)
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


def shares(
    best: Mapping[Cell, Try], tried: Mapping[Cell, Result], request: Request
) -> dict[Cell, float]:
    """The share of the epochs that each cell may train, so that all cells of a method cost what
    the method alone costs."""
    if request.budget == "equal-steps":
        return dict.fromkeys(best, 1.0)
    if request.budget == "equal-passes":
        from .pass_count import rows_per_step

        cost = {cell: rows_per_step(test_config(t, request, 0, 1)) for cell, t in best.items()}
    else:
        cost = {cell: seconds_per_step(result) for cell, result in tried.items()}
    return {cell: min(1.0, cost.get(Cell(cell.method), own) / own) for cell, own in cost.items()}


def seconds_per_step(result: Result) -> float:
    """Of training alone; on a CPU the processor's seconds, which other work does not lengthen."""
    whole: float = result["seconds"]
    training = 1 - sum(result["seconds_evaluating"]) / max(whole, 1e-9)
    if result["config"]["device"] == "cpu":
        whole = result.get("seconds_cpu") or whole
    return max(whole * training, 1e-9) / result["steps"]


def memory_gap(result: Result) -> float | None:
    """Final accuracy on stored samples minus that on test images, the mean over tasks that have
    stored samples: how far the memory is overfitted."""
    values = result["class_incremental"]
    pairs = zip(values["memory_accuracy"][-1], values["accuracy_matrix"][-1], strict=True)
    gaps = [memory - test for memory, test in pairs if memory is not None and test is not None]
    return fmean(gaps) if gaps else None


def findings_of(
    best: Mapping[Cell, Try], results: Mapping[tuple[Cell, int], Result], request: Request
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
        plain = [s for s in values(alone, seconds_per_step).values() if s]
        cost = fmean(map(seconds_per_step, mine)) / fmean(plain) if plain else None
        config = mine[0]["config"]
        row |= {"chosen": _chosen(cell, config), "factor": attempt.factor, "cost": cost}
        row |= {"epochs": config["training"]["epochs"], "seeds": len(mine)}
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
        "equal-passes": "Epochs are shortened so that as many rows pass forward through networks "
        "as with the method alone, but one epoch at least.",
        "equal-seconds": "Epochs are shortened by the time of a step in the tuning runs, so that a "
        "cell trains as long as the method alone, but one epoch at least.",
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
        "Cost: seconds of a training step over those of the method alone, in these runs.",
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
