"""Planning, sharing, resuming; what cannot be is refused."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from liderlab.config.scale import shrink
from liderlab.errors import RunFailed, Stopped, UserError
from liderlab.paper import numbers
from liderlab.paper.studies import STUDIES, find_study
from liderlab.paper.studies.case_runs import plan_runs, run_name
from liderlab.paper.studies.cases import Case, Request, config_of, preset_of
from liderlab.paper.studies.cost_estimate import count_steps, estimate_cost
from liderlab.paper.studies.study_definition import FinishedCase, PlannedRun
from liderlab.paper.studies.study_execution import (
    CompletedStudy,
    is_finished,
    run_in_turn,
    run_study,
)
from liderlab.paper.studies.study_rows import accuracy_rows
from liderlab.runs.build import build, completed
from liderlab.training.events import StepDone

Study = Callable[[str], CompletedStudy]
SETTINGS = ("cifar100",)


def no_runs(plans: Sequence[PlannedRun]) -> dict[str, str]:
    raise AssertionError(f"{len(plans)} runs are repeated")


def test_threads_also_hold_for_a_studys_own_computation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    monkeypatch.setattr("liderlab.paper.studies.toy.STEPS", {"smoke": 1})
    run_study("toy", Request("smoke", threads=1), tmp_path, no_runs)
    assert asked == [1]


def test_finished_work_is_not_repeated(conducted: Study, studies_folder: Path) -> None:
    first = conducted("fixed-target")
    again = run_study("fixed-target", Request("smoke"), studies_folder, no_runs)
    assert again.findings == first.findings
    measured = studies_folder / "hessian" / "measured"
    conducted("hessian")
    kept = sorted(measured.iterdir())
    before = [path.stat().st_mtime_ns for path in kept]
    run_study("hessian", Request("smoke"), studies_folder, no_runs)
    assert [path.stat().st_mtime_ns for path in kept] == before


def test_a_studys_runs_have_the_figure_that_every_run_has(conducted: Study) -> None:
    assert all((plan.folder / "accuracy.png").is_file() for plan in conducted("fixed-target").runs)


def test_studies_share_their_runs() -> None:
    plans = {
        name: {plan.name for _, plan in plan_runs(find_study(name), Request("smoke"), Path())}
        for name in STUDIES
    }
    assert plans["hessian"] == plans["weight-perturbation"]
    assert plans["guessing-game"] == plans["lipschitz-vs-buffer"]
    assert len(plans["main"] & plans["regularizers"]) >= 3
    assert len(plans["main"] & plans["poisoning"]) == 2
    everything = set().union(*plans.values())
    assert len(everything) < sum(map(len, plans.values())) * 0.75


def test_a_folder_with_another_configuration_is_refused(conducted: Study, tmp_path: Path) -> None:
    plan = conducted("fixed-target").runs[0]
    folder = tmp_path / plan.name
    folder.mkdir()
    text = (plan.folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(text.replace("lr: 0.3", "lr: 0.2"))
    with pytest.raises(UserError, match=r"training\.lr was 0\.2, now 0\.3"):
        is_finished(replace(plan, folder=folder))
    (folder / "config.yaml").write_text(text)
    assert not is_finished(replace(plan, folder=folder))
    assert is_finished(plan)


def test_names_tell_runs_apart() -> None:
    case, request = Case("cifar100", 500, "er-ace", "lider"), Request("smoke")
    variants = [
        case,
        replace(case, seed=1),
        replace(case, addition="lider-fixed"),
        replace(case, addition="lider-stream"),
        replace(case, alpha=0.5),
        replace(case, poison=0.1),
        replace(case, keep_tasks=True),
        replace(case, buffer=2000),
    ]
    names = {run_name(config_of(variant, request, SETTINGS)) for variant in variants}
    assert len(names) == len(variants)
    threads = config_of(case, Request("smoke", threads=2), SETTINGS)
    assert run_name(threads) == run_name(config_of(case, request, SETTINGS))


class StopsAt:
    """A display that presses Ctrl-C at the n-th step."""

    def __init__(self, step: int) -> None:
        self.left, self.labels = step, []

    def begin(self, label: str) -> None:
        self.labels.append(label)

    def finish(self) -> None: ...

    def __call__(self, work: Any, event: Any) -> None:
        self.left -= isinstance(event, StepDone)
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow
def test_ctrl_c_and_the_same_command_again(conducted: Study, tmp_path: Path) -> None:
    study, request = "fixed-target", Request("smoke")
    stops = StopsAt(150)  # in the second run of four
    with pytest.raises(Stopped):
        run_study(study, request, tmp_path, lambda plans: run_in_turn(plans, stops))
    assert len(stops.labels) == 2
    goes_on = StopsAt(-1)
    found = run_study(study, request, tmp_path, lambda plans: run_in_turn(plans, goes_on))
    assert len(goes_on.labels) == 3
    assert found.findings.rows == conducted(study).findings.rows  # to the bit


def test_a_failed_run_is_left_out_and_named(conducted: Study, studies_folder: Path) -> None:
    whole = conducted("fixed-target")

    def one_fails(plans: Sequence[PlannedRun]) -> dict[str, str]:
        return {plan.name: "the loss is not finite" for plan in plans}

    folder = whole.runs[0].folder
    result = folder / "result.json"
    hidden = result.rename(folder / "hidden")
    try:
        found = run_study("fixed-target", Request("smoke"), studies_folder, one_fails)
    finally:
        hidden.rename(result)
    assert len(found.findings.rows) == len(whole.findings.rows) - 1
    assert any("the loss is not finite" in note for note in found.findings.notes)
    assert list(found.failed) == [whole.runs[0].name]


def test_nothing_finished_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="no run of hessian has finished: out of luck"):
        run_study(
            "hessian", Request("smoke"), tmp_path, lambda ps: {p.name: "out of luck" for p in ps}
        )


def test_missing_data_and_weights_are_said_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "nothing"))
    with pytest.raises(UserError, match=r"CIFAR-100.*tinyimagenet32-resnet18.*--benchmark"):
        run_study("fixed-target", Request("cpu"), tmp_path / "out", no_runs)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_every_study_can_be_planned_at_every_scale(name: str, scale: str) -> None:
    study = find_study(name)
    for _, plan in plan_runs(study, Request(scale), Path("out")):
        assert plan.config.scale is not None
        assert plan.config.scale.name == scale
        assert plan.config.preset
    if study.settings:
        assert (
            estimate_cost(study, Request(scale, 2)).runs
            == 2 * estimate_cost(study, Request(scale)).runs
        )


def test_the_paper_scale_runs_are_those_of_the_tables() -> None:
    wanted = {
        (case.setting, case.buffer, case.method, case.addition)
        for case in find_study("main").cases(Request("paper"))
    }
    printed = {
        (c.setting, c.buffer, c.method, c.addition) for c in numbers.cells() if c.table == "faa"
    }
    assert wanted == printed
    config = config_of(Case("cub200", 400, "der++", "lider"), Request("paper"), ("cub200",))
    assert (config.benchmark.name, config.backbone.name) == ("split-cub200", "resnet50")
    assert (config.training.lr, config.regularizers["lider"]["beta"]) == (0.03, 0.03)


def test_controlled_changes_nothing_but_the_penalty() -> None:
    plain = config_of(Case("cifar100", 500, "er-ace"), Request("paper"), SETTINGS)
    case = Case("cifar100", 500, "er-ace", "lider", "controlled")
    controlled = config_of(case, Request("paper"), SETTINGS)
    tuned = config_of(replace(case, column="tuned"), Request("paper"), SETTINGS)
    same = ("preset", "regularizers")
    assert {k: v for k, v in controlled if k not in same} == {
        k: v for k, v in plain if k not in same
    }
    assert controlled.regularizers == tuned.regularizers
    assert tuned.training.lr != plain.training.lr


def test_one_learning_rate_for_all_runs() -> None:
    cases = find_study("which-lider").cases(Request("cpu"))
    rates = [config_of(c, Request("cpu", lr=0.3), ("cifar100",)).training.lr for c in cases]
    assert set(rates) == {0.3}


def test_fields_that_the_request_sets_for_all_runs() -> None:
    request = Request("cpu", changes=("benchmark.train_per_class=50", "training.momentum=0.9"))
    for case in find_study("which-lider").cases(request):
        config, usual = (config_of(case, r, ("cifar100",)) for r in (request, Request("cpu")))
        assert (config.benchmark.train_per_class, config.training.momentum) == (50, 0.9)
        assert (usual.benchmark.train_per_class, usual.training.momentum) == (None, 0)
        assert (config.seed, config.regularizers) == (usual.seed, usual.regularizers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("seed=3", "a study chooses seed itself: --set takes fields of benchmark, backbone"),
        ("regularizers.lider.alpha=1", "a study chooses regularizers itself"),
        ("benchmark.name=split-digits", "a study chooses benchmark.name itself"),
        ("benchmark=split-digits", "a study chooses benchmark.name itself"),
        ("memory.size", "expected a value like"),
    ],
)
def test_fields_that_a_study_chooses_itself_cannot_be_set(change: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        Request(changes=(change,))
    assert "\n" not in str(refused.value)


def test_the_table_names_the_fields_that_were_set(conducted: Study, studies_folder: Path) -> None:
    conducted("fixed-target")
    request = Request("smoke", changes=("training.lr=0.3",))  # the smoke scale's own value
    notes = run_study("fixed-target", request, studies_folder, no_runs).findings.notes
    assert "All runs have training.lr=0.3." in notes


def test_fewer_epochs_for_all_runs_keep_the_rest() -> None:
    """Milestones stay at their shares of the epochs, and the scale is applied once."""
    case = find_study("which-lider").cases(Request("cpu"))[0]
    whole, half, one = (
        config_of(case, Request(scale, epochs=epochs), ("cifar100",))
        for scale, epochs in (("paper", None), ("paper", 25), ("cpu", 1))
    )
    assert (whole.training.epochs, whole.training.milestones) == (50, [35, 45])
    assert (half.training.epochs, half.training.milestones) == (25, [18, 22])
    assert (one.training.epochs, one.training.milestones) == (1, [])
    scaled = completed(one)
    assert (scaled.training.epochs, scaled.backbone.width) == (1, 8)


def test_a_benchmark_restricts_or_replaces_the_settings() -> None:
    main = find_study("main")
    settings = {case.setting for case in main.cases(Request("paper", benchmark="split-cifar100"))}
    assert settings == {"cifar100", "cifar100-pretrained"}
    own = Request("paper", benchmark="split-mnist")
    planned = plan_runs(main, own, Path())
    assert {plan.config.benchmark.name for _, plan in planned} == {"split-mnist"}
    assert {case.setting for case, _ in planned} == {"cifar100"}
    sizes = {plan.config.memory.size for case, plan in planned if case.buffer}
    assert sizes == {50, 200}


def test_other_buffers_take_the_preset_of_the_nearest() -> None:
    assert preset_of(Case("cifar100", 5000, "er-ace", "lider")).name == "cifar100-2000-er-ace-lider"
    config = config_of(Case("cifar100", 5000, "er-ace"), Request("paper"), SETTINGS)
    assert config.memory.size == 5000


def test_bad_requests() -> None:
    with pytest.raises(UserError, match="did you mean 'smoke'"):
        Request("smok")
    with pytest.raises(UserError, match="split-cifar100"):
        Request("cpu", benchmark="split-cifar-100")
    with pytest.raises(UserError, match="at least one seed"):
        Request("cpu", seeds=0)


@pytest.mark.parametrize("method", ["er-ace", "joint", "der++", "gdumb"])
def test_counted_steps_are_those_of_the_loop(method: str) -> None:
    buffer = None if method == "joint" else 500
    config = config_of(Case("cifar100", buffer, method), Request("smoke"), SETTINGS)
    planned = build(completed(config)).loop.planned_steps()
    counted = count_steps(shrink(config.model_dump()))
    collecting = 5 * 8 if method == "gdumb" else 0  # steps that train nothing
    empty_memory = method == "gdumb"  # the loop cannot count on a memory that is still empty
    assert counted == planned or (empty_memory and planned == collecting)


def test_differences_are_paired_by_seed() -> None:
    def finished(addition: Any, seed: int, faa: float) -> FinishedCase:
        config = {"benchmark": {"name": "b", "tasks": 5}, "memory": {"size": 5}}
        result = {"class_incremental": {"faa": faa, "ff": None}, "config": config}
        return FinishedCase(Case("cifar100", 500, "er-ace", addition, seed=seed), Path(), result)

    plain = [finished("", seed, faa) for seed, faa in enumerate((50.0, 60.0, 70.0))]
    lider = [finished("lider", seed, faa) for seed, faa in ((2, 72.0), (0, 51.0), (1, 63.0))]
    rows = accuracy_rows(plain + lider, {"faa": "faa", "ff": "ff"})
    assert [row["faa"] for row in rows] == [60.0, 62.0]
    assert rows[0]["faa_std"] == 10.0
    assert rows[1]["gain"] == 2.0
    assert rows[1]["gain_low"] == pytest.approx(2 - 4.3027 / 3**0.5, abs=1e-4)
    assert rows[1]["ff"] is None
    assert rows[1]["paper_gain"] == pytest.approx(1.95)
