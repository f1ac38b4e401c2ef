"""`lider study`, `lider list studies` and `lider analyze`, as a user meets them."""

import json
from pathlib import Path

import pytest

from liderlab.paper.studies import STUDIES, find_study

SMALL = ["run", "--benchmark", "synthetic", "--width", "8", "--epochs", "2", "--buffer", "12"]


def test_list_studies(lider) -> None:
    code, out, err = lider("list", "studies")
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    assert all(name in out for name in STUDIES)
    assert "Number of runs, and processor time" in out
    code, out, _ = lider("list", "studies", "--json")
    tree = {row["name"]: row for row in json.loads(out)}
    assert tree["main"]["estimate"]["paper"]["runs"] == 110
    assert tree["main"]["estimate"]["paper"]["seconds"] > tree["main"]["estimate"]["cpu"]["seconds"]
    assert tree["hessian"]["analysis"]


def test_a_study_from_the_command_line(lider, tmp_path: Path) -> None:
    code, out, err = lider("study", "toy", "--out", "s", "--seeds", "2")
    assert code == 0, err
    assert "rehearsal + LiDER" in out
    assert "2 seeds" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "±" in (tmp_path / "s/toy/table.md").read_text()
    assert json.loads((tmp_path / "s/toy/result.json").read_text())["seeds"] == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("study mian", "did you mean 'main'"),
        ("study main --scale large", "unknown scale"),
        ("study main --benchmark cifar", "unknown benchmark"),
        ("study main --seeds 0", "--seeds"),
        ("study toy --device cuda --workers 2", "leave out --device and --workers"),
        ("study toy --lr 1", "leave out --lr"),
        ("study toy --epochs 1", "leave out --epochs"),
        ("study matrix --lr 0", "training.lr"),
        ("study matrix --epochs 0", "--epochs"),
        ("study which-lider --lr 0", "training.lr"),
        ("analyze main runs/x", "guessing-game"),
        ("analyze hesian runs/x", "did you mean 'hessian'"),
        ("analyze hessian runs/x", "not a run's folder"),
        ("analyze hessian runs/x --scale big", "unknown scale"),
        ("list study", "studies"),
    ],
)
def test_mistakes_are_one_sentence(lider, tmp_path: Path, arguments: str, says: str) -> None:
    code, _, err = lider(*arguments.split())
    assert code == 2
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "studies").exists()


def test_analyze_any_run(lider, tmp_path: Path) -> None:
    assert lider(*SMALL, "--out", "x")[0] == 0
    looking = [name for name in STUDIES if find_study(name).measure and name != "efficiency"]
    assert looking == [name for name, entry in STUDIES.items() if entry.facts.get("analysis")]
    for name in looking:
        code, out, err = lider("analyze", name, "x", "--scale", "smoke")
        assert code == 0, err
        assert "ER-ACE" in (tmp_path / f"x/analysis/{name}/table.md").read_text()
        assert (tmp_path / f"x/analysis/{name}/figure.png").exists()
    code, out, _ = lider("analyze", "hessian", "x", "--scale", "smoke", "--json", "--out", "y")
    assert json.loads(out)["measured"]["trace"] == pytest.approx(
        json.loads((tmp_path / "x/analysis/hessian/result.json").read_text())["rows"][0]["trace"]
    )


def test_the_guessing_game_needs_a_memory(lider) -> None:
    assert lider(*SMALL, "--method", "finetune", "--out", "x")[0] == 0
    code, _, err = lider("analyze", "guessing-game", "x")
    assert code == 2
    assert "finetune has no memory" in err


@pytest.mark.slow
def test_parallel_runs_and_a_report(lider, in_terminal, tmp_path: Path) -> None:
    options = ["study", "decision-surface", "--scale", "smoke", "--out", "s"]
    code, out, err = lider(*options, "--workers", "2")
    assert code == 0, err
    assert "report.html" in out
    page = (tmp_path / "s/decision-surface/report.html").read_text()
    assert "er-ace" in page
    runs = {
        folder.name: (folder / "result.json").stat().st_mtime_ns
        for folder in (tmp_path / "s/runs").iterdir()
    }
    assert len(runs) == 2
    assert len(list((tmp_path / "s/runs").glob("*/accuracy.png"))) == 2
    code, shown = in_terminal(*options, "--workers", "2", NO_COLOR="1")  # nothing is run again
    assert code == 0
    assert "report.html" in shown
    assert "\x1b" not in shown
    code, out, _ = lider(*options, "--json")
    assert code == 0
    assert json.loads(out)["study"] == "decision-surface"
    assert runs == {
        folder.name: (folder / "result.json").stat().st_mtime_ns
        for folder in (tmp_path / "s/runs").iterdir()
    }
