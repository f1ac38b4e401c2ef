"""A sweep's file: its runs, their names, and mistakes."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from liderlab.errors import UserError
from liderlab.runs.folder import RunFolder
from liderlab.sweeps.sweep_file import check_runs, read_sweep

BASE = {"benchmark": "synthetic", "training": {"epochs": 1}}


def test_every_combination_under_a_readable_name(tmp_path: Path) -> None:
    tree = {
        "base": BASE,
        "points": [{"name": "plain"}, {"regularizers": {"lider": {}}}],
        "grid": {"method": ["er", "der++"], "training.lr": [0.1, 1e-5]},
        "seeds": [3, 4],
    }
    points = read_sweep(tree, tmp_path, 1)
    assert len(points) == 2 * 2 * 2 * 2
    assert points[0].plan.name == "plain,er,lr=0.1,seed=3"
    assert points[-1].plan.name == "lider,der++,lr=1e-05,seed=4"
    assert points[-1].group == "lider,der++,lr=1e-05"
    config = points[-1].plan.config
    assert (config.method.name, config.training.lr, config.seed) == ("der++", 1e-5, 4)
    assert list(config.regularizers) == ["lider"]
    assert not points[0].plan.config.regularizers
    assert points[0].plan.folder == tmp_path / "runs" / points[0].plan.name


def test_names_do_not_depend_on_the_other_values(tmp_path: Path) -> None:
    few = read_sweep({"base": BASE, "grid": {"training": {"lr": [0.1]}}}, tmp_path, 1)
    many = read_sweep({"base": BASE, "grid": {"training.lr": [0.3, 0.1]}, "seeds": 2}, tmp_path, 1)
    assert few[0].plan.name == "lr=0.1,seed=0"
    assert few[0].plan.name in {point.plan.name for point in many}


def test_presets_by_pattern(tmp_path: Path) -> None:
    tree = {"presets": ["cifar100-500-er-ace*"], "base": {"scale": "smoke"}, "seeds": 1}
    names = [point.group for point in read_sweep(tree, tmp_path, 1)]
    assert "cifar100-500-er-ace" in names
    assert "cifar100-500-er-ace-lider" in names


def test_long_names_stay_different_and_within_a_folder_name(tmp_path: Path) -> None:
    words = ["x" * 200 + end for end in "ab"]
    points = [{"name": word} for word in words]
    names = [p.plan.name for p in read_sweep({"base": BASE, "points": points}, tmp_path, 1)]
    assert len(set(names)) == 2
    assert max(map(len, names)) < 140


def test_letters_of_any_language_are_kept_within_a_folder_name(tmp_path: Path) -> None:
    points = [{"name": name} for name in ("é", "ü", "語" * 200, "語" * 201)]
    names = [p.plan.name for p in read_sweep({"base": BASE, "points": points}, tmp_path, 1)]
    assert names[:2] == ["é,seed=0", "ü,seed=0"]
    assert len(set(names)) == 4
    assert max(len(name.encode()) for name in names) < 140


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"gird": {}}, "did you mean 'grid'"),
        ({"grid": {"training.lr": 0.1}}, "must be a list"),
        ({"grid": {"training.lr": [0.1, 0.1]}}, "two runs of the sweep are the same"),
        ({"grid": {"training.lr": [0.1, -1]}}, "lr=-1: training.lr"),
        ({"grid": {"method": ["er", "er_ace"]}}, "did you mean 'er-ace'"),
        ({"points": ["er"]}, "point 1"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1.5]}, "seeds"),
        ({"seeds": 10**30}, "at most 100,000 runs"),
        ({"grid": {name: [*range(400)] for name in ("seed", "memory.size")}}, "at most 100,000"),
        ({"points": [{"name": "a b"}, {"name": "a/b"}]}, "have the same name: a-b"),
        ({"grid": {"seed": [3, 4]}, "seeds": 1}, "seed cannot be varied"),
        ({"points": [{"seed": 3}, {"seed": 4}], "seeds": [0]}, "seed cannot be varied"),
        ({"base": []}, "base must hold fields"),
        ({"presets": ["cifar100-500-er-acee"]}, "did you mean"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, tree: dict, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_sweep({"base": BASE, **tree}, tmp_path, 1)


def test_an_impossible_run_is_found_before_the_first_one(lider, write, tmp_path: Path) -> None:
    file = write("s.yaml", {"base": BASE, "grid": {"benchmark.tasks": [3, 7]}})
    with pytest.raises(UserError, match=r"benchmark.tasks=7,seed=0: 6 classes"):
        check_runs(read_sweep({"base": BASE, "grid": {"benchmark.tasks": [3, 7]}}, tmp_path, 1))
    code, out, err = lider("sweep", file, "--out", "x")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "x").exists()


def test_a_full_disk_is_found_before_the_first_run(
    lider, write, tmp_path: Path, monkeypatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    code, out, err = lider("sweep", write("s.yaml", {"base": BASE}), "--out", "x")
    assert (code, out, err) == (2, "", "lider: cannot write to x: No space left on device\n")


@pytest.mark.parametrize(
    "command",
    ["sweep s.yaml", "sweep s.yaml --dry-run", "search --space space.yaml --set tracker=[foo]"],
)
def test_an_unknown_tracker_is_found_before_the_first_run(
    lider, write, tmp_path: Path, command: str
) -> None:
    write("s.yaml", {"base": {**BASE, "tracker": ["foo"]}})
    write("space.yaml", {"training.lr": [0.1, 0.3]})
    code, out, err = lider(*command.split(), "--out", "x")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "unknown tracker 'foo'" in err
    assert not (tmp_path / "x").exists()


@pytest.mark.usefixtures("inline_engine")
def test_a_report_is_named_only_if_there_is_one(lider, write, tmp_path: Path) -> None:
    base = {**BASE, "backbone": {"width": 8}, "training": {"epochs": 1, "lr": 1e30}, "threads": 1}
    file = write("s.yaml", {"base": base})
    code, out, _ = lider("sweep", file, "--out", "x")
    assert code == 1
    assert "wrote x: summary.csv, runs.csv\n" in out
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "runs",
        "runs.csv",
        "summary.csv",
    ]


@pytest.mark.usefixtures("inline_engine")
def test_damaged_runs_left_out_of_the_report_are_named(lider, write, tmp_path: Path) -> None:
    file = write("s.yaml", {"base": {**BASE, "backbone": {"width": 8}, "threads": 1}, "seeds": 2})
    code, _, err = lider("sweep", file, "--out", "x")
    assert code == 0, err
    (tmp_path / "x/runs/seed=1/metrics.jsonl").write_text("nonsense\n")
    code, _, err = lider("sweep", file, "--out", "x")
    assert code == 0, err
    assert "lider: left out: " in err
    assert "seed=1" in err.split("left out: ")[1]


@pytest.mark.usefixtures("inline_engine")
def test_a_damaged_result_is_written_again(lider, write, tmp_path: Path) -> None:
    file = write("s.yaml", {"base": {**BASE, "backbone": {"width": 8}, "threads": 1}, "seeds": 2})
    assert lider("sweep", file, "--out", "x")[0] == 0
    result = tmp_path / "x/runs/seed=1/result.json"
    before = json.loads(result.read_text())
    result.write_text("")
    code, _, err = lider("sweep", file, "--out", "x")
    assert code == 0, err
    assert json.loads(result.read_text())["class_incremental"] == before["class_incremental"]


@pytest.mark.parametrize("out", ["s.yaml", "s.yaml/below"])
@pytest.mark.parametrize("command", ["sweep s.yaml", "search --space space.yaml"])
def test_a_file_as_out_is_refused(lider, write, command: str, out: str) -> None:
    write("s.yaml", {"base": BASE})
    write("space.yaml", {"training.lr": [0.1, 0.3]})
    code, printed, err = lider(*command.split(), "--out", out)
    assert (code, printed) == (2, "")
    assert err == "lider: s.yaml is a file: choose a folder for --out\n"


def test_a_begun_run_keeps_its_threads_and_nothing_else(tmp_path: Path) -> None:
    base = {"benchmark": {"name": "synthetic"}, "threads": None}
    point = read_sweep({"base": base}, tmp_path, 3)[0]
    assert point.plan.config.threads == 3
    folder = RunFolder(point.plan.folder)
    folder.path.mkdir(parents=True)
    folder.begin(point.plan.config)
    assert read_sweep({"base": base}, tmp_path, 1)[0].plan.config.threads == 3
    with pytest.raises(UserError, match="another configuration"):
        read_sweep({"base": {**base, "memory": {"size": 7}}}, tmp_path, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("sweep s.yaml --engine rya", "did you mean 'ray'"),
        ("sweep s.yaml --workers 0", "at least 1"),
        ("sweep s.yaml --address auto", "--engine ray"),
        ("sweep s.yaml --slurm mem_gb=1", "--engine slurm"),
        ("sweep s.yaml --engine slurm --slurm x", "expected KEY=VALUE"),
        ("sweep nowhere.yaml", "cannot read"),
        ("search --sampler gird", "--sampler': 'gird' is not one of 'tpe', 'grid'"),
        ("search --set method.name=x-der-rpc", "--space FILE"),
        ("search --space s.yaml", "base"),
    ],
)
def test_bad_options_are_one_sentence(lider, write, tmp_path: Path, arguments, says) -> None:
    write("s.yaml", {"base": "er"})
    code, out, err = lider(*arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert says in err


@pytest.mark.parametrize(
    ("package", "command", "install"),
    [
        ("ray", "sweep s.yaml --engine ray", "pip install 'liderlab[ray]'"),
        ("submitit", "sweep s.yaml --engine slurm", "pip install 'liderlab[slurm]'"),
        ("optuna", "search --space space.yaml", "pip install 'liderlab[search]'"),
    ],
)
def test_a_missing_extra_prints_how_to_install_it(
    lider, write, monkeypatch: pytest.MonkeyPatch, package: str, command: str, install: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    write("s.yaml", {"base": BASE})
    write("space.yaml", {"training.lr": [0.1, 0.3]})
    code, _, err = lider(*command.split())
    assert code == 2
    assert install in err
    assert err.count("\n") == 1
