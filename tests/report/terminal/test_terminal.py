"""The commands `lider runs`, `compare`, `watch` and `report`."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liderlab.functional.statistics import paired_difference
from liderlab.report.run_records import RunRecord, read_all, seed_folders
from liderlab.report.terminal.live_view import sparkline
from liderlab.report.terminal.run_filter import Condition
from liderlab.report.terminal.run_filter import select as choose
from liderlab.report.terminal.run_snapshot import RunWatcher, Snapshot
from liderlab.runs.folder import RunFolder

PATIENCE = 60.0


def narrow(text: str) -> bool:
    return max(map(len, text.splitlines())) <= 80


def test_runs_lists_them_in_80_columns(lider: Any, runs: Path) -> None:
    code, out, err = lider("runs", str(runs))
    assert (code, err) == (0, "")
    assert narrow(out)
    assert len(out.splitlines()) == 9
    assert "er-ace + LiDER" in out
    code, out, _ = lider("runs", str(runs), "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["er-ace-1"]["seed"] == 1
    faa = RunRecord.read(runs / "gmed").metric("class_incremental", "faa")
    assert rows["gmed"]["faa"] == faa


def test_long_names_of_runs_are_whole(lider: Any, runs: Path, tmp_path: Path) -> None:
    names = [f"a-folder-of-many-runs,lr=0.1,alpha=0.3,seed={seed}" for seed in (0, 1)]
    for name in names:
        shutil.copytree(runs / "er-ace-0", tmp_path / "all" / name)
    _, out, _ = lider("runs", "all")
    assert narrow(out)
    folded = "".join(line.split()[0] for line in out.splitlines()[1:-1])
    assert folded == "".join(names)


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        (["method=er-ace"], ["er-ace-0", "er-ace-1", "er-ace-lider-0", "er-ace-lider-1"]),
        (["method=er-ace", "lider=yes", "seed=1"], ["er-ace-lider-1"]),
        (["lider=no", "method!=er-ace"], ["gmed", "joint", "poisoned"]),
        (["memory.poison>=0.5"], ["poisoned"]),
        (["memory.poison<0.5", "seed>0", "lider=false"], ["er-ace-1"]),
        (["regularizers=lider", "seed=0"], ["er-ace-lider-0"]),
        (["regularizers.lider.alpha=0.1", "seed<=0"], ["er-ace-lider-0"]),
        (["buffer=null"], ["joint"]),
        (["buffer!=null", "method=er"], ["poisoned"]),
        (["faa>100"], []),
    ],
)
def test_where_selects_runs(runs: Path, conditions: list[str], names: list[str]) -> None:
    records, _ = read_all([runs])
    chosen = choose(records, [Condition.parse(text) for text in conditions])
    assert [record.name for record in chosen] == names


def test_where_by_metric_agrees_with_the_metric(runs: Path) -> None:
    records, _ = read_all([runs])
    middle = sorted(record.facts()["faa"] for record in records)[3]
    chosen = choose(records, [Condition.parse(f"faa > {middle}")])
    assert [r for r in records if r.facts()["faa"] > middle] == chosen


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("runs nowhere", "nowhere is not a folder"),
        ("runs {runs} --where method", "like method=er-ace"),
        ("runs {runs} --where metod=er", "did you mean 'method'"),
        ("runs {runs} --where seed=one", "seed is a number"),
        ("runs {runs} --where lider=maybe", "lider is yes or no"),
        ("report nowhere", "nowhere is not a folder"),
        ("report {runs} -o file/x.html", "cannot write"),
        ("compare nowhere {runs}", "nowhere is not a folder"),
        ("compare {runs} {runs}", "differ in more than their seeds"),
        ("watch nowhere --once", "nowhere is not a folder"),
    ],
)
def test_mistakes_give_one_sentence_and_exit_code_2(
    lider: Any, runs: Path, tmp_path: Path, arguments: str, says: str
) -> None:
    (tmp_path / "file").touch()
    code, out, err = lider(*arguments.format(runs=runs).split())
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_compare_two_runs(lider: Any, runs: Path) -> None:
    a, b = str(runs / "er-ace-0"), str(runs / "er-ace-lider-1")
    code, out, err = lider("compare", a, b)
    assert (code, err) == (0, "")
    assert narrow(out)
    assert "regularizers.lider.alpha" in out
    assert "seed" in out
    assert "training.lr" not in out
    tree = json.loads(lider("compare", a, b, "--json")[1])
    faa = tree["class_incremental"]["faa"]
    assert faa["difference"]["mean"] == pytest.approx(faa["b"] - faa["a"])
    assert tree["configuration"]["seed"] == [0, 1]


def test_compare_seed_by_seed(lider: Any, runs: Path, tmp_path: Path) -> None:
    for side, name in (("a", "er-ace"), ("b", "er-ace-lider")):
        for seed in (0, 1):
            shutil.copytree(runs / f"{name}-{seed}", tmp_path / side / str(seed))
    tree = json.loads(lider("compare", "a", "b", "--json")[1])
    values = [
        {r.seed: r.metric("class_incremental", "faa") for r in read_all([tmp_path / side])[0]}
        for side in "ab"
    ]
    expected = paired_difference(values[1], values[0])
    assert tree["class_incremental"]["faa"]["difference"] == vars(expected)
    assert "seed" not in tree["configuration"]
    code, out, _ = lider("compare", "a", "b")
    assert code == 0
    assert "±" in out
    assert narrow(out)


LAYOUTS = {"demo": "{}-seed{}", "sweep": "{},memory.size=20,seed={}"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_compare_pairs_the_seeds_of_the_labs_own_layouts(
    lider: Any, runs: Path, tmp_path: Path, layout: str
) -> None:
    for name in ("er-ace", "er-ace-lider"):
        for seed in (0, 1):
            folder = tmp_path / "all" / LAYOUTS[layout].format(name, seed)
            shutil.copytree(runs / f"{name}-{seed}", folder)
    a, b = (f"all/{LAYOUTS[layout].format(n, '')}" for n in ("er-ace", "er-ace-lider"))
    expanded = [f"{side}{seed}" for side in (a, b) for seed in (0, 1)]  # as a shell does
    common = [side.removesuffix("-seed").removesuffix(",seed=") for side in (a, b)]
    values = [
        {
            seed: RunRecord.read(runs / f"{n}-{seed}").metric("class_incremental", "faa")
            for seed in (0, 1)
        }
        for n in ("er-ace", "er-ace-lider")
    ]
    expected = vars(paired_difference(values[1], values[0]))  # type: ignore[arg-type]
    sides = {tuple(common): common, (f"{a}*", f"{b}*"): [f"{a}*", f"{b}*"], tuple(expanded): common}
    for given, names in sides.items():
        code, out, err = lider("compare", *given, "--json")
        assert (code, err) == (0, "")
        tree = json.loads(out)
        assert [tree["a"], tree["b"]] == names
        assert tree["runs"] == [2, 2]
        assert tree["class_incremental"]["faa"]["difference"] == expected
    whole = json.loads(lider("compare", "all", "--json")[1])
    sign = 1 if whole["a"] == common[0] else -1
    assert whole["class_incremental"]["faa"]["difference"]["mean"] == sign * expected["mean"]


def test_compare_refuses_other_numbers_of_experiments(lider: Any, runs: Path) -> None:
    code, out, err = lider("compare", str(runs))
    assert (code, out) == (2, "")
    assert "two experiments are compared, but these are 5: " in err
    code, _, err = lider("compare", str(runs / "gmed"))
    assert code == 2
    assert "but these are 1: " in err
    code, _, err = lider("compare", f"{runs}/er-ace-*9", f"{runs}/er")
    assert err == f"lider: {runs}/er-ace-*9 is not a folder\n"


def test_a_folder_may_look_like_a_pattern(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "er-ace-0", tmp_path / "a[1]")
    assert seed_folders(tmp_path / "a[1]") == [tmp_path / "a[1]"]
    for seed in (10, 9):
        (tmp_path / f"x-seed{seed}").mkdir()
    (tmp_path / "x-seed8").touch()
    assert seed_folders(tmp_path / "x") == [tmp_path / "x-seed9", tmp_path / "x-seed10"]


def test_a_seed_that_was_run_twice_is_one_seed(lider: Any, runs: Path, tmp_path: Path) -> None:
    values = []
    for name, more in (("one", 0.0), ("two", 10.0)):
        shutil.copytree(runs / "er-ace-0", tmp_path / "a" / name)
        file = tmp_path / "a" / name / "result.json"
        result = json.loads(file.read_text())
        result["class_incremental"]["faa"] += more
        result["config"]["tracker"] = ["tensorboard"] if more else []  # says nothing about training
        file.write_text(json.dumps(result))
        values.append(result["class_incremental"]["faa"])
    shutil.copytree(runs / "er-ace-lider-0", tmp_path / "b" / "one")
    tree = json.loads(lider("compare", "a", "b", "--json")[1])
    assert tree["class_incremental"]["faa"]["a"] == pytest.approx(sum(values) / 2)
    assert "seed 0\n" in lider("compare", "a", "b")[1]


def test_report_names_the_runs_left_out(lider: Any, runs: Path, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        shutil.copytree(runs / "er-ace-0", tmp_path / "r" / name)
    (tmp_path / "r/bad/result.json").write_text("{")
    code, out, err = lider("report", "r", "-o", "x.html")
    assert code == 0
    assert "wrote x.html: 1 run, " in out
    assert err.startswith("lider: left out: ")
    assert (tmp_path / "x.html").stat().st_size < 300_000


def break_metrics(run: Path) -> None:
    (run / "metrics.jsonl").write_text("nonsense\n")


def forget_the_kind(run: Path) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 99}\n')


def garble_configuration(run: Path) -> None:
    (run / "config.yaml").write_bytes(b"\xff\xfe")


def spell_an_accuracy(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    result["class_incremental"]["accuracy_matrix"][0][0] = "good"
    (run / "result.json").write_text(json.dumps(result))


def empty_the_rows(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    result["task_incremental"]["accuracy_matrix"] = [[], [], []]
    (run / "result.json").write_text(json.dumps(result))


REPORTED, SHOWN, COMPARED = ("report",), ("report", "watch"), ("report", "watch", "compare")


@pytest.mark.parametrize(
    ("damage", "readers"),
    [
        (break_metrics, SHOWN),
        (forget_the_kind, SHOWN),
        (garble_configuration, REPORTED),
        (spell_an_accuracy, COMPARED),
        (empty_the_rows, COMPARED),
    ],
)
def test_a_damaged_run_is_left_out_and_named(
    lider: Any,
    runs: Path,
    tmp_path: Path,
    damage: Callable[[Path], None],
    readers: tuple[str, ...],
) -> None:
    """readers: the commands that read the damaged file; they leave the run out and name it."""
    for name in ("a-good", "bad", "z-good"):
        shutil.copytree(runs / "er-ace-0", tmp_path / "r" / name)
    damage(tmp_path / "r/bad")
    commands = {
        "report": ["report", "r", "--no-memory"],
        "watch": ["watch", "r", "--once"],
        "compare": ["compare", "r", str(runs / "er-ace-1")],
    }
    for name, words in commands.items():
        code, out, err = lider(*words)
        assert code == 0, (name, err)
        message = "lider: left out: r/bad"
        assert (err.count("\n"), err.startswith(message)) == (
            (1, True) if name in readers else (0, False)
        ), (name, err)
        if name == "report":
            assert "wrote report.html: 2 runs, " in out
        if name == "watch":
            assert f"{3 - (name in readers)} finished" in out
    assert lider("report", "r/bad")[0] == 2


def test_watch_once_shows_one_run_or_many(lider: Any, runs: Path) -> None:
    code, out, err = lider("watch", str(runs), "--once")
    assert (code, err) == (0, "")
    assert narrow(out)
    assert "7 finished" in out
    code, out, _ = lider("watch", str(runs / "er-ace-lider-0"))  # no terminal: once as well
    assert code == 0
    assert narrow(out)
    for name in ("accuracy so far", "replay", "lider/c_lip", "lider/λ/", "100%"):
        assert name in out


def test_progress_and_time_left(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "er-ace-0", tmp_path / "x")
    (tmp_path / "x/result.json").unlink()
    lines = (tmp_path / "x/metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "x/metrics.jsonl").write_text("".join(lines[:2]))
    folder = RunFolder(tmp_path / "x")
    folder.write_progress({"step": 6, "planned": 24, "seconds": 3.0, "left": 9.0})
    watched = RunWatcher(tmp_path)
    assert (watched.look()[0].done, watched.look()[0].left) == (0.25, None)
    with folder.lock():
        snapshot = watched.look()[0]
        assert (snapshot.record.state, snapshot.left) == ("running", 9.0)
        folder.write_progress({"step": 18, "planned": 24, "seconds": 9.0})
        assert watched.look()[0].done == 0.75
    assert Snapshot.of(RunRecord.read(runs / "er-ace-0")).done == 1.0


def test_sparkline_bounds() -> None:
    assert len(sparkline(list(range(1000)), 20)) <= 20
    assert sparkline([], 5) == ""
    assert sparkline([-1.0, 1.0], 5) == "▁█"
    assert sparkline([0.0, 0.0], 5) == "▁▁"


@pytest.mark.parametrize("colour", [True, False])
def test_watch_follows_a_run_to_its_end_in_a_terminal(
    runs: Path, tmp_path: Path, colour: bool
) -> None:
    """A running run is shown as running; watch ends when the run has finished."""
    path = tmp_path / "x"
    shutil.copytree(runs / "er-ace-0", path)
    result = (path / "result.json").read_bytes()
    (path / "result.json").unlink()
    keep = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    environment = {**keep, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "30"}
    environment |= {} if colour else {"NO_COLOR": "1"}
    here, there = pty.openpty()
    with RunFolder(path).lock():
        process = subprocess.Popen(
            [sys.executable, "-m", "liderlab", "watch", str(path), "--every", "0.1"],
            stdout=there,
            stderr=there,
            env=environment,
        )
        os.close(there)
        seen = read_until(here, b"running")
        (path / "result.json").write_bytes(result)
    seen += read_until(here, b"finished")
    assert process.wait(PATIENCE) == 0
    os.close(here)
    assert (b"\x1b[36m" in seen) == colour  # cyan: a run under way


def read_until(terminal: int, text: bytes) -> bytes:
    seen, deadline = b"", time.monotonic() + PATIENCE
    while text not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65536)
    return seen


def test_watch_ends_quietly_on_ctrl_c(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    shutil.copytree(runs / "er-ace-0", path)
    (path / "result.json").unlink()
    here, there = pty.openpty()
    program = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"from liderlab.cli import main\nsys.argv = ['lider', 'watch', {str(path)!r}]\nmain()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=there, stderr=there)
    os.close(there)
    seen = read_until(here, b"stopped")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    assert b"Traceback" not in seen
    os.close(here)


@pytest.mark.parametrize(
    "arguments", [["runs", "{runs}"], ["watch", "{runs}", "--once"], ["report", "--help"]]
)
def test_run_listings_import_no_torch(runs: Path, arguments: list[str]) -> None:
    filled = [text.format(runs=runs) for text in arguments]
    program = (
        f"import sys\nfrom liderlab.cli import main\nsys.argv = ['lider', *{filled!r}]\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = {'torch', 'numpy', 'matplotlib', 'PIL'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
