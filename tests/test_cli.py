"""The command line, as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image

from liderlab.config.merging import make_config

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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run --method er_ace", "did you mean 'er-ace'"),
        ("run --benchmark digits", "did you mean 'split-digits'"),
        ("run --backbone resnet-18", "did you mean 'resnet18'"),
        ("run --regularizer lidr", "did you mean 'lider'"),
        ("run --buffer -1", "memory.size"),
        ("run --method er --buffer 0", "needs a memory"),
        ("run --method finetune --lider", "--lider-on stream"),
        ("run --tasks 11", "10 classes can be split into 1…10 tasks, not 11"),
        ("run --class-order 1,x", "--class-order"),
        ("run --class-order 1,2", "class order must list each"),
        ("run --set training.lr", "training.lr=0.1"),
        ("run --config missing.yaml", "cannot read missing.yaml"),
        ("run --config typo.yaml", "did you mean 'training'"),
        ("run --config broken.yaml", "not valid YAML"),
        ("run --lider-targets wrong", "'learned', 'fixed'"),
        ("run --lider-on elsewhere", "'replay' or 'stream'"),
        ("run --lider --lider-alpha -1", "alpha"),
        ("run --epochs many", "--epochs"),
        ("run --epochs 0", "training.epochs"),
        ("run --width 0", "width"),
        ("run --device toaster", "cpu, cuda"),
        ("run --device meta", "cpu, cuda"),
        ("run --device cuda:99", "not available"),
        ("run --threads 100000", "1024"),
        ("run --set regularizers=lider", "like {lider: {alpha: 0.1}}"),
        ("run --set regularizers.lider=3", "like {alpha: 0.1}"),
        ("run --set benchmark.class_order=random", "natural, shuffled, or a list"),
        ("run --set training.milestones=[3,2]", "each later than the one before"),
        ("run --method icarl --buffer 5", "a buffer of that size or more"),
        ("run --set training=3", "training: expected fields and their values, but got 3"),
        ("run --set regularizers.lider.stages=block1", "stages: expected a list, but got 'block1'"),
        ("run --tasks 10 --set benchmark.train_per_class=1", "task 1 has a single training image"),
        ("pretrain --benchmark synthetic --out full/file/w.pt", "cannot write full/file/w.pt"),
        ("pretrain --benchmark synthetic --out ./full", "cannot write full"),
        ("run --buffer 100000000000000", "not enough memory"),
        ("run --backbone mlp --lider", 'estimator="batch"'),
        ("run --out full", "--force"),
        ("run --checkpoint-every soon", "like 30s, 5m or 1h"),
        ("run --on-nonfinite maybe", "'stop' or 'skip'"),
        ("run --method finetune --set memory.poison=0.5", "finetune has no memory"),
        (f"run --set benchmark.train_per_class={10**30}", "benchmark.train_per_class"),
        (f"run --regularizer ssgd --set regularizers.ssgd.batch_size={10**30}", "batch_size ≥ 2"),
        ("run --benchmark folder:~nobody-of-that-name/x", "unknown home folder"),
        ("data list --root ~nobody-of-that-name/x", "unknown home folder"),
        ("watch full --every inf", "every ≥ 0.1 and ≤ 86400"),
        ("watch full --every nan", "every ≥ 0.1 and ≤ 86400"),
        ("resume nowhere", "not a run's folder"),
        ("verify-resume --kills 0", "--kills"),
        ("verify-resume --out x", "takes no --out"),
        ("verify-resume --out=x --method er", "takes no --out"),
        ("verify-resume --resume", "takes no --resume"),
        ("verify-resume --force", "takes no --force"),
        ("verify-resume --method x --keep kept", "unknown method 'x'"),
        ("run --force --resume", "give one of them"),
        ("list studies x", "only presets are filtered"),
        ("ledger cells zzz", "no cell has 'zzz' in its name"),
        ("show full[/b]", "full[/b] is not a run's folder"),
        ("run --nonsense 3", "--nonsense"),
        ("list metods", "did you mean 'methods'"),
        ("show nowhere", "not a run's folder"),
        ("predict nowhere a.png", "not a run's folder"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(lider, tmp_path: Path, arguments, says) -> None:
    (tmp_path / "typo.yaml").write_text("trainign: {lr: 1}")
    (tmp_path / "broken.yaml").write_text("a: [1")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    before = sorted(tmp_path.rglob("*"))
    code, out, err = lider(*arguments.split())
    assert code == 2
    assert out == ""
    assert says in err
    assert err.startswith("lider: ")
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before  # nothing half-written


def test_lists(lider) -> None:
    code, out, _ = lider("list")
    assert code == 0
    assert all(name in out for name in ("er-ace", "split-digits", "resnet18", "lider"))
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = lider("list", "methods", "--json")
    methods = {row["name"]: row for row in json.loads(out)}
    assert methods["er-ace"]["year"] == 2022
    assert methods["er-ace"]["policy"] == "reservoir"
    code, out, _ = lider("list", "--json")
    assert set(json.loads(out)) == {"methods", "benchmarks", "backbones", "regularizers"}


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_a_command_that_needs_another_shows_its_help(lider, arguments) -> None:
    code, out, err = lider(*arguments)
    assert (code, err) == (0, "")
    assert out.split() == lider(*arguments, "--help")[1].split()


def test_a_path_with_brackets_is_printed_as_it_is(lider) -> None:
    code, out, err = lider(*SMALL, "--out", "a [b] c")
    assert code == 0, err
    assert "wrote a [b] c in" in out.replace("\n", " ")
    assert lider("show", "a [b] c")[1].startswith("a [b] c: er-ace")


def test_a_finished_run_is_shown_and_left_alone(lider, tmp_path: Path) -> None:
    code, first, err = lider(*SMALL, "--lider", "--out", "x")
    assert code == 0
    assert err.startswith("lider regularises input → block1 → block2 → block3 → block4\n")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "x").rglob("*")}
    for command in (["resume", "x"], [*SMALL, "--lider", "--out", "x", "--resume"]):
        code, out, err = lider(*command)
        assert (code, err) == (0, "")
        *table, last = out.splitlines()
        assert last == "x had finished already: nothing was done"
        assert table == first.splitlines()[:-1]
    assert before == {file: file.stat().st_mtime_ns for file in before}


def test_stages_that_are_left_out_are_named_at_the_start(lider, tmp_path: Path) -> None:
    arguments = ("--backbone", "resnet18", "--set", "benchmark.per_class=4")
    code, _, err = lider(*SMALL, *arguments, "--lider", "--out", "x")
    assert code == 0
    assert err.splitlines()[0] == (
        "lider regularises input → stem → layer1 → layer2 → layer3; nothing to regularise in layer4"
    )
    result = json.loads((tmp_path / "x/result.json").read_text())
    assert result["resolved"]["lider"]["left_out"] == ["layer4"]
    assert result["config"]["regularizers"]["lider"]["stages"] is None


def test_version_and_help(lider) -> None:
    assert lider("--version")[1] == "lider 0.1.0\n"
    code, out, _ = lider("run", "--help")
    assert code == 0
    assert "--buffer" in out


@pytest.mark.parametrize("arguments", [["--help"], ["list", "benchmarks"], ["list", "presets"]])
def test_looking_around_imports_no_torch(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom liderlab.cli import main\n"
        f"sys.argv = ['lider', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = {'torch', 'sklearn', 'matplotlib', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m liderlab list --json | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""


def test_an_interrupted_demo_goes_on_and_a_whole_one_is_made_anew(
    lider, tmp_path: Path, monkeypatch
) -> None:
    config = make_config({"benchmark": "synthetic", "training": {"epochs": 1}})
    monkeypatch.setattr("liderlab.cli.demo.demo_runs", lambda seeds: [("er", config)])
    log = tmp_path / "d/er-seed0/metrics.jsonl"
    assert lider("demo", "--out", "d")[0] == 0
    first = log.stat().st_ino
    (tmp_path / "d/demo.png").unlink()
    assert lider("demo", "--out", "d")[0] == 0
    assert log.stat().st_ino == first
    log.write_bytes(log.read_bytes() + b"\n")
    assert lider("demo", "--out", "d")[0] == 0
    assert not log.read_bytes().endswith(b"\n\n")


def test_demo(lider, tmp_path: Path) -> None:
    code, out, err = lider("demo", "--seeds", "1", "--out", "d")
    assert code == 0, err
    assert "er-ace + LiDER" in out
    assert (tmp_path / "d/demo.png").is_file()
    assert "er-ace-lider-seed0" in (tmp_path / "d/report.html").read_text()
    faa = {}
    for name in ("finetune", "er-ace", "er-ace-lider", "joint"):
        result = json.loads((tmp_path / f"d/{name}-seed0/result.json").read_text())
        faa[name] = result["class_incremental"]["faa"]
    assert faa["finetune"] < 30 < 60 < min(faa["er-ace"], faa["er-ace-lider"]) < faa["joint"]


def test_module_runs_like_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "liderlab", "--version"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.stdout == "lider 0.1.0\n"


@pytest.mark.parametrize("command", [SMALL, ["demo", "--seeds", "1"]], ids=["run", "demo"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_says_how_to_go_on(
    tmp_path: Path, command: list[str], number: signal.Signals, code: int
) -> None:
    program = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"from liderlab.cli import main\nsys.argv = ['lider', *{[*command, '--out', 'x']!r}]\n"
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
    how = "by giving the same command again" if "demo" in command else "with: lider resume x"
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


def test_nobody_is_asked_where_nobody_can_answer(lider, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "x").mkdir()
    for name in ("config.yaml", ".lock"):
        (tmp_path / "x" / name).touch()
    monkeypatch.setattr("sys.stdin", None)  # closed by whoever started us
    code, _, err = lider("run", "--out", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "--resume to go on with it" in err


def test_what_the_disk_refuses_is_one_line(lider, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = lider("verify-resume", "--keep", "file/x")
    assert (code, err) == (1, "lider: file/x: Not a directory\n")


@pytest.mark.parametrize(
    "text",
    ["regularizers: [lider]", "method: 3", "method: [a]", "memory: null", "training: 5"],
)
def test_a_section_of_the_wrong_kind_is_refused(lider, tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    code, _, err = lider("run", "--config", "c.yaml", "--epochs", "1", "--out", "x")
    assert code == 2, err
    assert err.count("\n") == 1
    assert not (tmp_path / "x").exists()
