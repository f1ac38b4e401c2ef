"""`lider run` and `lider resume`, as a user meets them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image

SMALL = ["run", "--benchmark", "synthetic", "--width", "8", "--epochs", "1", "--buffer", "20"]


def test_run_show_predict(lider, tmp_path: Path) -> None:
    code, out, err = lider(*SMALL, "--lider", "--seed", "1", "--out", "runs/x")
    assert code == 0, err
    assert "FAA" in out
    assert "task 3/3" in err  # progress: plain lines where there is no terminal
    assert "c_lip" in err
    run = tmp_path / "runs/x"
    assert {path.name for path in run.iterdir()} == {
        "config.yaml",
        "metrics.jsonl",
        "result.json",
        "checkpoints",
        "accuracy.png",
        ".lock",
    }
    assert max(map(len, out.splitlines())) <= 80

    code, out, _ = lider("show", "runs/x")
    assert code == 0
    assert "er-ace + lider on synthetic" in out.replace("\n", " ")
    code, out, _ = lider("show", "runs/x", "--json")
    assert json.loads(out)["config"]["seed"] == 1

    Image.fromarray(np.full((8, 8, 3), 90, dtype=np.uint8)).save("a.png")
    code, out, _ = lider("predict", "runs/x", "a.png")
    assert code == 0
    assert out.startswith("a.png\t")
    code, out, _ = lider("predict", "runs/x", "a.png", "--json")
    assert json.loads(out)[0]["class"] in "012345"

    code, _, err = lider(*SMALL, "--out", "runs/x")
    assert code == 2
    assert "--force" in err
    code, _, err = lider("run", "--config", "runs/x/config.yaml", "--out", "runs/x", "--force")
    assert code == 0, err


def test_options_reach_the_configuration(lider, tmp_path: Path) -> None:
    arguments = (
        "--method der++ --lider-alpha 0.2 --lider-beta 0.4 --lider-on replay --lider-draw fresh "
        "--lider-targets fixed --batch-size 12 --lr 0.05 --tasks 2 --class-order 5,4,3,2,1,0 "
        "--threads 1 --device cpu --set method.alpha=0.7 --set training.momentum=0.5 --out x"
    )
    code, _, err = lider(*SMALL, *arguments.split())
    assert code == 0, err
    config = json.loads((tmp_path / "x/result.json").read_text())["config"]
    lider_options = config["regularizers"]["lider"]
    assert (lider_options["alpha"], lider_options["beta"]) == (0.2, 0.4)
    assert (lider_options["draw"], lider_options["learn_targets"]) == ("fresh", False)
    assert config["method"] == {"name": "der++", "alpha": 0.7, "beta": 0.5}
    assert config["training"]["momentum"] == 0.5
    assert (config["training"]["batch_size"], config["training"]["lr"]) == (12, 0.05)
    assert config["benchmark"]["tasks"] == 2
    assert config["benchmark"]["class_order"] == [5, 4, 3, 2, 1, 0]
    assert (config["memory"]["size"], config["backbone"]["width"]) == (20, 8)


def test_a_path_with_brackets_is_printed_as_it_is(lider) -> None:
    code, out, err = lider(*SMALL, "--out", "a [b] c")
    assert code == 0, err
    assert "wrote a [b] c in" in out.replace("\n", " ")
    assert lider("show", "a [b] c")[1].startswith("a [b] c: er-ace")


def test_a_finished_run_is_shown_and_not_changed(lider, tmp_path: Path) -> None:
    code, first, err = lider(*SMALL, "--lider", "--out", "x")
    assert code == 0
    chain = "input → block1 → block2 → block3 → block4"
    assert err.startswith(f"lider (spatial form) regularises {chain}\n")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "x").rglob("*")}
    for command in (["resume", "x"], [*SMALL, "--lider", "--out", "x", "--resume"]):
        code, out, err = lider(*command)
        assert (code, err) == (0, "")
        *table, last = out.splitlines()
        assert last == "x had finished already: nothing was done"
        assert table == first.splitlines()[:-1]
    assert before == {file: file.stat().st_mtime_ns for file in before}


def test_stages_without_a_constant_are_named_at_the_start(lider, tmp_path: Path) -> None:
    arguments = ("--backbone", "resnet18", "--set", "benchmark.per_class=4")
    code, _, err = lider(*SMALL, *arguments, "--lider", "--out", "x")
    assert code == 0
    assert err.splitlines()[0] == (
        "lider (spatial form) regularises input → stem → layer1 → layer2 → layer3; "
        "nothing to regularise in layer4"
    )
    result = json.loads((tmp_path / "x/result.json").read_text())
    assert result["resolved"]["lider"]["left_out"] == ["layer4"]
    assert result["config"]["regularizers"]["lider"]["stages"] is None


@pytest.mark.parametrize("line", [SMALL, ["demo", "--seeds", "1"]], ids=["run", "demo"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_says_how_to_go_on(
    tmp_path: Path, line: list[str], number: signal.Signals, code: int
) -> None:
    program = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"from liderlab.cli import main\nsys.argv = ['lider', *{[*line, '--out', 'x']!r}]\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not list(tmp_path.rglob("metrics.jsonl")):
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    how = "by giving the same command again" if "demo" in line else "with: lider resume x"
    assert err.splitlines()[-1] == f"lider: stopped: everything is saved; go on {how}"
    assert "Traceback" not in err


def test_no_answer_to_a_question_is_one_line(lider, tmp_path: Path, monkeypatch) -> None:
    def no_answer(question: str) -> bool:
        raise typer.Abort

    (tmp_path / "x").mkdir()
    for name in ("config.yaml", ".lock"):  # as a run leaves them
        (tmp_path / "x" / name).touch()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", no_answer)
    assert lider("run", "--out", "x") == (130, "", "lider: interrupted\n")


def test_without_a_user_to_ask_an_unfinished_run_is_refused(
    lider, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "x").mkdir()
    for name in ("config.yaml", ".lock"):
        (tmp_path / "x" / name).touch()
    monkeypatch.setattr("sys.stdin", None)  # closed by the parent process
    code, _, err = lider("run", "--out", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "--resume to go on with it" in err
