"""The matrix: tuned alike, chosen on validation images, compared on test images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.paper.studies import charts, matrix, pass_count
from liderlab.paper.studies.cases import Request
from liderlab.paper.studies.matrix_cells import (
    TUNING_SEED,
    Cell,
    Try,
    best_of,
    cells_of,
    command_of,
    factors,
    strengths,
    test_config,
    tries_of,
    tuning_config,
    untuned_rate,
)
from liderlab.regularizers import REGULARIZERS
from liderlab.runs.build import completed
from liderlab.runs.planned_run import PlannedRun

SMALL = Request(seeds=2, methods=("er",), regularizers=("lider+star", "spectral"), tries=2)
test_config.__test__ = False  # type: ignore[attr-defined]


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
        runs = [test_config(Try(cell, 0.3), SMALL, seed, 1.0) for seed in range(2)]
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


def test_a_budget_shortens_epochs_and_milestones() -> None:
    request = Request("cpu", benchmark="split-cifar100", methods=("er",))
    attempt = Try(Cell("er", ("star",)), 0.3)
    configs = [test_config(attempt, request, 0, share) for share in (1.0, 0.5, 0.01)]
    assert [completed(config).training.epochs for config in configs] == [4, 2, 1]  # of the scale's
    assert max(completed(configs[1]).training.milestones, default=1) <= 2


def timed(device: str = "cpu", **seconds: Any) -> dict[str, Any]:
    return {**seconds, "steps": 10, "config": {"device": device}}


def shares(budget: str, seconds: dict[Cell, float]) -> dict[Cell, float]:
    results = {
        cell: timed(seconds=s + 5, seconds_evaluating=[2.0, 3.0], seconds_cpu=s + 5)
        for cell, s in seconds.items()
    }
    best = {cell: Try(cell, 0.3) for cell in seconds}
    return matrix.shares(best, results, Request(budget=budget, methods=("er",)))


def test_shares_of_the_epochs_under_each_budget() -> None:
    alone, sam = Cell("er"), Cell("er", ("sam",))
    assert shares("equal-steps", {alone: 1.0, sam: 4.0}) == {alone: 1.0, sam: 1.0}
    assert shares("equal-seconds", {alone: 1.0, sam: 4.0}) == pytest.approx({alone: 1.0, sam: 0.25})
    assert shares("equal-seconds", {alone: 1.0, sam: 0.5})[sam] == 1.0  # never longer
    assert shares("equal-passes", {alone: 1.0, sam: 1.0}) == {alone: 1.0, sam: 0.5}


def test_a_busy_processor_makes_no_step_dearer() -> None:
    """Half of the time was spent waiting for other programs; a tenth of the rest, evaluating."""
    waited = {"seconds": 100.0, "seconds_evaluating": [10.0], "seconds_cpu": 50.0}
    assert matrix.seconds_per_step(timed(**waited)) == pytest.approx(4.5)
    assert matrix.seconds_per_step(timed("cuda", **waited)) == pytest.approx(9.0)


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
