"""Every study at smoke scale: the shape and the sanity of what it finds."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liderlab import LiDER
from liderlab.config.schema import RunConfig
from liderlab.paper.studies import STUDIES, find_study, lipschitz_vs_buffer
from liderlab.paper.studies.case_runs import plan_run, plan_runs
from liderlab.paper.studies.cases import Case, Request, config_of
from liderlab.paper.studies.study_execution import CompletedStudy
from liderlab.paper.studies.which_lider import kind_of
from liderlab.report.study_files import FILES, write_study
from liderlab.runs.execute import run

Study = Callable[[str], CompletedStudy]
ROWS = {
    "main": 17,
    "regularizers": 10,
    "target": 6,
    "fixed-target": 4,
    "which-lider": 6,
    "poisoning": 8,
    "single-epoch": 5,
    "sensitivity": 4,
    "guessing-game": 4,
    "decision-surface": 20,
    "lipschitz-vs-buffer": 4,
    "weight-perturbation": 28,
    "hessian": 4,
    "efficiency": 4,
    "matrix": 3,
    "toy": 2,
}


def rows(conducted: CompletedStudy, **where: Any) -> list[dict[str, Any]]:
    """The rows with these values."""
    found = conducted.findings.rows
    return [row for row in found if all(row[key] == value for key, value in where.items())]


# ten seconds to a minute each: many runs, or a process for each of its measurements
LONG = (
    *("main", "which-lider", "poisoning", "single-epoch", "sensitivity"),
    *("decision-surface", "efficiency", "matrix"),
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in STUDIES],
)
def test_a_study_writes_its_findings(conducted: Study, name: str, tmp_path: Path) -> None:
    study = conducted(name)
    write_study(study, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
    result = json.loads((tmp_path / "result.json").read_text())
    assert len(result["rows"]) == ROWS[name]
    assert result["paper"]
    assert not result["failed"]
    with (tmp_path / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == ROWS[name]
    text = (tmp_path / "table.md").read_text()
    assert "One seed" in text
    if name != "toy":
        assert "Stand-in: run on split-digits" in text
        assert result["stand_in"] == "split-digits"
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    for column in study.findings.columns:
        assert any(row.get(column.keys[0]) is not None for row in result["rows"]) or (
            column.title in ("paper", "FF ↓")
        )


@pytest.mark.slow
def test_main_lies_between_its_bounds_and_stands_beside_the_paper(conducted: Study) -> None:
    study = conducted("main")
    joint, finetune = (rows(study, method=m)[0]["faa"] for m in ("joint", "finetune"))
    assert joint > finetune + 40
    rehearsing = [r for r in study.findings.rows if r["method"] not in ("joint", "finetune")]
    assert all(r["faa"] < joint for r in rehearsing)
    assert sum(r["faa"] > finetune for r in rehearsing) == len(rehearsing)
    tuned = rows(study, method="er-ace", addition="lider", column="tuned")[0]
    assert (tuned["paper_faa"], tuned["paper_ff"]) == (38.43, 36.00)
    assert tuned["paper_gain"] == pytest.approx(1.95)
    plain = rows(study, method="er-ace", addition="")[0]
    assert tuned["gain"] == pytest.approx(tuned["faa"] - plain["faa"])
    controlled = rows(study, method="er-ace", addition="lider", column="controlled")[0]
    assert controlled["paper_faa"] is None
    gain = study.findings.data["average_gain"][0]
    assert gain["paper_text"] == 2.32
    assert gain["paper_cells"] == pytest.approx(2.32, abs=0.005)
    methods = ("icarl", "der++", "gdumb", "er-ace")
    each = [rows(study, method=m, addition="lider", column="tuned")[0]["gain"] for m in methods]
    assert gain["tuned"] == pytest.approx(sum(each) / 4)


@pytest.mark.slow
def test_each_kind_of_lider_is_its_own_run(conducted: Study) -> None:
    study = conducted("which-lider")
    kinds = {row["kind"]: row for row in study.findings.rows}
    assert kinds["none"]["faa"] + kinds["tuned"]["gain"] == pytest.approx(kinds["tuned"]["faa"])
    options = [plan.config.regularizers.get("lider", {}) for plan in study.runs]
    assert [o.get("draw") for o in options] == [None, "reuse", "fresh", "reuse", "reuse", "fresh"]
    assert [o.get("control") for o in options] == [None, False, False, False, False, True]
    assert (options[2]["learn_targets"], options[2]["weights"]) == (False, "swapped")
    assert (options[3]["alpha"], options[4]["beta"]) == (0.0, 0.0)


def test_the_full_study_has_every_kind_of_lider() -> None:
    cases = find_study("which-lider").cases(Request(scale="cpu"))
    kinds = [(kind_of(case), case.targets, case.roles) for case in cases]
    assert len(kinds) == len(set(kinds)) == 17
    both = {(t, r) for t in ("learned", "fixed") for r in ("paper", "swapped")}
    for form in ("paper", "released", "c-term alone"):
        assert {(t, r) for kind, t, r in kinds if kind == form} == both
    assert {r for kind, _, r in kinds if kind == "0-term alone"} == {"paper", "swapped"}
    assert {kind for kind, _, _ in kinds} >= {"none", "tuned", "control"}
    for case in cases:  # each term alone, by its weight
        if "alone" in kind_of(case):
            options = config_of(case, Request(scale="cpu"), ("cifar100",)).regularizers["lider"]
            made = LiDER(**options)
            assert made._names == ["c_lip" if "c-term" in kind_of(case) else "0_lip"]


@pytest.mark.slow
def test_poisoning_hurts(conducted: Study) -> None:
    plain = {row["poison"]: row["faa"] for row in rows(conducted("poisoning"), addition="")}
    assert plain[0.25] < plain[0.0] - 8
    assert [row["paper_faa"] for row in rows(conducted("poisoning"), poison=0.25)] == [28.74, 30.78]


def test_the_memory_of_er_ace_can_be_guessed(conducted: Study) -> None:
    study = conducted("guessing-game")
    tiny = rows(study, addition="", paper_buffer=200)[0]
    assert tiny["buffer"] == 20
    assert tiny["auc"] > 0.6
    assert 0 < tiny["in_memory"] < 20
    assert all(0 <= row["auc"] <= 1 for row in study.findings.rows)


@pytest.mark.slow
def test_decision_surfaces_shrink(conducted: Study) -> None:
    areas = {
        (row["label"], row["group"], row["task"]): row["area"]
        for row in conducted("decision-surface").findings.rows
    }
    assert all(0 <= area <= 100 for area in areas.values())
    assert areas["ER-ACE", "not rehearsed", 5] < areas["ER-ACE", "not rehearsed", 1]
    # LiDER has nothing to hear in the first task: both runs start alike
    first = [areas[label, "rehearsed", 1] for label in ("ER-ACE", "ER-ACE + LiDER")]
    assert first[0] == first[1]


def test_attacks_lower_the_accuracy(conducted: Study) -> None:
    study = conducted("lipschitz-vs-buffer")
    assert all(row["fgsm"] <= row["accuracy"] for row in study.findings.rows)
    assert all(row["lambda"] > 0 and row["log10_bound"] > 0 for row in study.findings.rows)
    for attacked in study.findings.data["attacks"]:
        for percent in attacked["accuracy"].values():
            assert percent[-1] <= percent[0]
            if percent[0] > 40:  # one that is near chance has little to lose
                assert percent[-1] < percent[0] - 5
    assert max(attacked["accuracy"]["fgsm"][0] for attacked in study.findings.data["attacks"]) > 40


def test_lider_lowers_lambda(conducted: Study, tmp_path: Path) -> None:
    """With a strong 0-term: by the paper's weights, three short epochs leave the sign to the last
    bits, which differ between processors."""
    study = conducted("lipschitz-vs-buffer")
    (plain,) = rows(study, addition="", paper_buffer=200, method="er-ace")
    case = Case("cifar100", 200, "er-ace", "lider", alpha=0.0, beta=10.0)
    plan = plan_run(config_of(case, Request("smoke"), ("cifar100",)), tmp_path)
    run(plan.config, plan.folder)
    measured = lipschitz_vs_buffer.measure(plan.folder, "smoke")
    assert measured["constants"]["mean"] < 0.6 * plain["lambda"]


def test_noise_in_the_weights_hurts(conducted: Study) -> None:
    study = conducted("weight-perturbation")
    for label in {row["label"] for row in study.findings.rows}:
        found = rows(study, label=label)
        assert [row["sigma"] for row in found] == sorted(row["sigma"] for row in found)
        assert found[-1]["loss"] > found[0]["loss"]
        assert found[-1]["accuracy"] < found[0]["accuracy"]


def test_curvature_is_that_of_a_minimum(conducted: Study) -> None:
    for row in conducted("hessian").findings.rows:
        assert row["trace"] > 0
        assert row["largest"] > 0


@pytest.mark.slow
def test_every_network_is_measured(conducted: Study) -> None:
    study = conducted("efficiency")
    assert all(row["megabytes"] > 50 and row["speed"] > 0 for row in study.findings.rows)
    assert {row["network"] for row in study.findings.rows} == {
        "convnet-small, width 8",
        "convnet-small, width 16",
    }


def test_the_toy_learns(conducted: Study) -> None:
    assert all(60 < row["faa"] <= 100 for row in conducted("toy").findings.rows)


@pytest.mark.slow
def test_sensitivity_is_around_its_mean(conducted: Study) -> None:
    found = conducted("sensitivity").findings.rows
    assert {(row["alpha"], row["beta"]) for row in found} == {
        (a, b) for a in (0.01, 0.3) for b in (0.01, 0.3)
    }
    assert sum(row["from_mean"] for row in found) == pytest.approx(0)
    assert len({row["faa"] for row in found}) > 1


def planned(name: str) -> list[RunConfig]:
    return [plan.config for _, plan in plan_runs(find_study(name), Request("smoke"), Path())]


def test_additions_reach_the_configurations_of_the_runs() -> None:
    wanted = {
        "regularizers": {"ssgd", "oewc", "olap", "lider"},
        "target": {"lider"},
        "fixed-target": {"lider"},
    }
    for name, regularizers in wanted.items():
        assert {r for config in planned(name) for r in config.regularizers} == regularizers
    doors = [
        config.regularizers["lider"].get("on")
        for config in planned("target")
        if config.regularizers
    ]
    assert sorted(map(str, doors)) == ["replay", "replay", "stream", "stream"]
    learned = [
        config.regularizers["lider"].get("learn_targets", True)
        for config in planned("fixed-target")
    ]
    assert sorted(learned) == [False, False, True, True]
    assert all(config.training.epochs == 1 for config in planned("single-epoch"))
