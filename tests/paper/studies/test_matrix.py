"""The matrix: tuned alike, chosen on validation images, compared on test images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from liderlab.analysis import interleaved_timing
from liderlab.config.merging import make_config
from liderlab.config.schema import RunConfig
from liderlab.errors import UserError
from liderlab.paper.studies import charts, matrix, pass_count, step_cost
from liderlab.paper.studies.cases import Request
from liderlab.paper.studies.matrix_cells import (
    TUNING_SEED,
    Cell,
    Try,
    best_of,
    cells_of,
    command_of,
    factors,
    final_config,
    strengths,
    tries_of,
    tuning_config,
    untuned_rate,
)
from liderlab.paper.studies.step_cost import relative_cost
from liderlab.regularizers import REGULARIZERS
from liderlab.runs.build import completed
from liderlab.runs.planned_run import PlannedRun

SMALL = Request(seeds=2, methods=("er",), regularizers=("lider+star", "spectral"), tries=2)


def test_every_regulariser_has_a_strength_and_the_same_number_of_tries() -> None:
    for name in REGULARIZERS:
        assert strengths(name, 2.0) != strengths(name, 1.0) != {}, name
    assert factors(3)[1] == 1
    cells = cells_of(SMALL)
    assert [cell.column for cell in cells] == ["alone", "lider+star", "spectral"]
    assert {len(tries_of(cell, 0.3, SMALL)) for cell in cells} == {2}


def test_tries_hold_out_images_and_test_runs_have_other_seeds() -> None:
    for cell in cells_of(SMALL):
        for attempt in tries_of(cell, 0.3, SMALL):
            config = tuning_config(attempt, SMALL)
            assert (config.seed, config.benchmark.validation) == (TUNING_SEED, 0.1)
        runs = [final_config(Try(cell, 0.3), SMALL, seed) for seed in range(2)]
        assert [(run.seed, run.benchmark.validation) for run in runs] == [(0, None), (1, None)]
        assert tuple(runs[0].regularizers) == cell.regularizers


def test_the_method_alone_tries_learning_rates_and_the_others_strengths() -> None:
    alone, both = (tuning_config(Try(cell, 0.3, 10.0), SMALL) for cell in cells_of(SMALL)[:2])
    assert alone.training.lr == pytest.approx(3.0)
    assert both.training.lr == 0.3
    assert both.regularizers["lider"] == {"alpha": 1.0, "beta": 3.0}
    assert both.regularizers["star"] == {"weight": 1.0}


def test_the_grid_of_rates_lies_around_the_one_that_is_asked_for() -> None:
    assert untuned_rate("er", SMALL) == 0.3
    assert untuned_rate("er", replace(SMALL, lr=0.05)) == 0.05
    assert command_of(Cell("er"), replace(SMALL, lr=0.05)).endswith("--lr 0.05")


def test_the_best_try_and_of_equal_ones_the_nearest_to_the_defaults() -> None:
    cell = Cell("er", ("star",))
    tries = [Try(cell, 0.3, factor) for factor in (0.1, 1.0, 10.0)]
    assert best_of(list(zip(tries, (50.0, 40.0, 60.0), strict=True))) is tries[2]
    assert best_of(list(zip(tries, (50.0, 50.0, 50.0), strict=True))) is tries[1]


def test_a_budget_of_steps_replaces_the_epochs_of_the_scale() -> None:
    request = Request("cpu", benchmark="split-cifar100", methods=("er",))
    attempt = Try(Cell("er", ("star",)), 0.3)
    whole, shorter = (completed(final_config(attempt, request, 0, n)) for n in (None, 70))
    assert (whole.training.budget, whole.training.epochs) == (None, 4)
    assert shorter.training.budget is not None
    assert shorter.training.budget.chosen == ("steps", 70)
    assert shorter.scale == whole.scale
    assert completed(shorter) == shorter  # as a run that goes on reads it


def steps(budget: str, cost: float, planned: int = 100) -> int | None:
    """Of SAM, whose step has this cost."""
    alone, sam = Cell("er"), Cell("er", ("sam",))
    best = {cell: Try(cell, 0.3) for cell in (alone, sam)}
    request = Request(budget=budget, methods=("er",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "planned_steps", lambda config: planned)
        found = matrix.allowed_steps(best, {alone: 1.0, sam: cost}, request)
    assert found[alone] is None
    return found[sam]


def test_steps_under_each_budget() -> None:
    assert steps("equal-steps", 4.0) is None
    assert steps("equal-seconds", 4.0) == 25
    assert steps("equal-seconds", 3.0) == 34  # rounded up: at least one
    assert steps("equal-seconds", 0.5) is None  # never more
    assert steps("equal-passes", 1.0) == 50


def test_costs_are_measured_once_and_of_the_method_alone_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, sam, lonely = Cell("er"), Cell("er", ("sam",)), Cell("der++", ("sam",))
    best = {cell: Try(cell, 0.3) for cell in (alone, sam, lonely)}
    pairs: list[tuple[RunConfig, RunConfig]] = []

    def cost(config: RunConfig, other: RunConfig) -> float:
        pairs.append((config, other))
        return 2.0 * len(pairs)

    monkeypatch.setattr(matrix, "relative_cost", cost)
    for _ in range(2):
        assert matrix.step_costs(best, SMALL, tmp_path) == {alone: 1.0, sam: 2.0}
    ((config, other),) = pairs
    assert (list(config.regularizers), list(other.regularizers)) == (["sam"], [])


def test_a_step_of_sam_costs_two_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that counts the rows that have passed through networks."""
    alone, sam = (final_config(Try(c, 0.3), SMALL, 0) for c in (Cell("er"), Cell("er", ("sam",))))
    with pass_count.counted() as rows:
        monkeypatch.setitem(interleaved_timing.CLOCKS, "cpu", lambda: float(sum(rows)))
        assert relative_cost(sam, alone, rounds=3) == 2


def test_a_slow_moment_of_the_machine_falls_on_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock runs ever faster; the steps with the regulariser take three times as long."""
    now = [1.0]

    def take(seconds: Any) -> None:
        now[0] *= 1.001 ** next(seconds)

    monkeypatch.setitem(interleaved_timing.CLOCKS, "cpu", lambda: now[0])
    monkeypatch.setattr(step_cost, "_take", take)
    monkeypatch.setattr(step_cost, "_steps", lambda config: repeat(config.seed))
    three, one = (make_config({"benchmark": "synthetic", "seed": seed}) for seed in (3, 1))
    assert relative_cost(three, one, rounds=20) == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize(("name", "rows"), [("alone", 12), ("sam", 24), ("star", 24), ("bfp", 24)])
def test_rows_of_a_step(name: str, rows: int) -> None:
    """er: 8 of the stream, 4 replayed. SAM: all twice. STAR: its draw three times. BFP: the rows
    through the old network as well."""
    config = make_config(
        {
            "method": "er",
            "benchmark": "synthetic",
            "memory": {"size": 20},
            "training": {"batch_size": 8, "replay_size": 4},
            "regularizers": {} if name == "alone" else {name: {}},
        }
    )
    assert pass_count.rows_per_step(config) == rows


Runs = Callable[[list[PlannedRun]], dict[str, str]]


def invented(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Runs, list[PlannedRun]]:
    """Runs that train nothing: their accuracy depends on the regulariser, strength and seed."""
    done: list[PlannedRun] = []

    def accuracy(plan: PlannedRun) -> float:
        config = plan.config
        gain = {"spectral": 5.0, "lider": 0.0}.get(next(iter(config.regularizers), ""), 0.0)
        # on validation images strong is best; on test images weak would be
        strong = 3.0 if config.benchmark.validation else -3.0
        options = next(iter(config.regularizers.values()), {"weight": config.training.lr})
        strength = next(iter(options.values()))
        noise = {"lider": (4.0, -4.0), "spectral": (0.1, -0.1)}
        name = next(iter(config.regularizers), "")
        wobble = noise.get(name, (0.0, 0.0))[config.seed % 2]
        return 50 + gain + wobble + strong * float(strength)

    def result(plan: PlannedRun) -> dict[str, Any]:
        values = {"faa": accuracy(plan), "aia": 60.0, "ff": 5.0, "wc_acc": 40.0}
        table = {"accuracy_matrix": [[70.0, None], [60.0, 50.0]]}
        memory = {"memory_accuracy": [[99.0, None], [90.0, None]]}
        config = plan.config.model_dump(mode="json")
        spent = {"seconds": 3.0, "seconds_evaluating": [1.0, 1.0], "steps": 10}
        return {"class_incremental": values | table | memory, "config": config, **spent}

    monkeypatch.setattr(matrix, "_result", result)
    monkeypatch.setattr(matrix, "relative_cost", lambda config, alone: 1.5)
    return lambda plans: done.extend(plans) or {}, done


def test_strengths_are_chosen_on_validation_images_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all, done = invented(tmp_path, monkeypatch)
    executed = matrix.execute(SMALL, tmp_path, run_all)
    tuned = [plan for plan in done if plan.config.benchmark.validation]
    tested = [plan for plan in done if not plan.config.benchmark.validation]
    assert (len(tuned), len(tested)) == (3 * 2, 3 * 2)
    rows = {row["column"]: row for row in executed.findings.rows}
    assert {row["factor"] for row in rows.values()} == {factors(2)[1]}  # the strong one
    assert rows["spectral"]["gain"] > 4
    assert charts.clear(rows["spectral"])
    assert not charts.clear(rows["lider+star"])
    assert "gain" not in rows["alone"]
    assert (rows["alone"]["cost"], rows["spectral"]["cost"]) == (1.0, 1.5)
    assert rows["alone"]["memory_gap"] == 30.0  # of the task that has stored samples
    assert "--regularizers lider+star" in rows["lider+star"]["command"]
    chosen = [attempt for attempt in executed.findings.data["tries"] if attempt["chosen"]]
    assert len(chosen) == 3
    rates = {plan.config.training.lr for plan in tested}  # of the method alone, for all
    assert list(rates) == pytest.approx([0.3 * factors(2)[1]])
    assert {plan.config.training.lr for plan in tuned if plan.config.regularizers} == rates
    figure = matrix.show(executed.findings)
    words = {text.get_text() for text in figure.axes[0].texts}
    assert len(words) == 2
    assert figure.axes[0].images[0].get_alpha().tolist() == [[charts.PALE, 1.0]]


def test_a_cell_whose_tries_fail_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invented(tmp_path, monkeypatch)

    def failing(plans: Any) -> dict[str, str]:
        return {p.name: "not finite" for p in plans if "spectral" in p.config.regularizers}

    executed = matrix.execute(SMALL, tmp_path, failing)
    assert [row["column"] for row in executed.findings.rows] == ["alone", "lider+star"]
    assert len(executed.failed) == 2


def test_fields_set_for_all_runs_reach_tries_and_tests_but_not_what_is_tuned() -> None:
    request = Request("cpu", changes=("benchmark.train_per_class=50", "training.lr=0.7"))
    cell = Cell("er", ("lider",))
    assert untuned_rate("er", request) == 0.7  # the centre of the grid
    attempt = Try(cell, 0.2, 2.0)
    tuning, test = tuning_config(attempt, request), final_config(attempt, request, 1)
    for config in (tuning, test):
        assert (config.benchmark.train_per_class, config.training.lr) == (50, 0.2)
    assert (tuning.benchmark.validation, test.seed) == (0.1, 1)
    assert "--set benchmark.train_per_class=50 --set training.lr=0.7" in command_of(cell, request)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ("gdumb",)}, "gdumb fits its memory with learning rates of its own"),
        ({"methods": ("finetune",), "regularizers": ("star",)}, "star needs replayed samples"),
        ({"regularizers": ("lider+stars",)}, "unknown regularizer 'stars'"),
        ({"methods": ("err",)}, "unknown method 'err'"),
        ({"regularizers": ("ssgd",), "tries": 5}, "Expected dropout ≥ 0 and < 1"),
    ],
)
def test_cells_that_cannot_work_are_refused_before_anything_is_written(
    options: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        matrix.execute(Request(**options), tmp_path, lambda plans: pytest.fail("a run began"))
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_the_command_refuses_its_options_with_other_studies(lider: Any) -> None:
    code, _, said = lider("study", "toy", "--methods", "er", "--tries", "2")
    assert code == 2
    assert "leave out --methods and --tries, or choose the study matrix" in " ".join(said.split())
    code, _, said = lider("study", "matrix", "--budget", "equal")
    assert code == 2
    assert "unknown budget 'equal'" in said


@pytest.mark.slow
def test_the_whole_command(lider: Any, tmp_path: Path) -> None:
    code, out, _ = lider(
        *("study", "matrix", "--methods", "er", "--regularizers", "spectral", "--tries", "1")
    )
    assert code == 0
    assert "Every cell had 1 try on 10%" in out
    assert "| ER + spectral |" in (tmp_path / "studies/matrix/table.md").read_text()
    page = (tmp_path / "studies/matrix/report.html").read_text()
    assert "data:image/png;base64," in page
