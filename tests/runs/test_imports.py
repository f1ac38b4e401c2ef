"""Files that register the user's own classes: every command that works on a run loads them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from liderlab import BACKBONES, BENCHMARKS, METHODS, REGULARIZERS, load
from liderlab.config.imports import load_imports
from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.registry import Entry
from liderlab.runs.build import Run
from liderlab.runs.execute import run
from liderlab.runs.folder import RunFolder
from liderlab.runs.resume_proof import compare
from liderlab.training.events import Event

pytestmark = pytest.mark.usefixtures("fresh_registries")
Lider = Callable[..., tuple[int, str, str]]
REGISTRIES = (METHODS, REGULARIZERS, BACKBONES, BENCHMARKS)

METHOD = """
from liderlab import METHODS
from liderlab.methods.er import ER
from liderlab.registry import Entry


class Mine(ER):
    pass


METHODS["{name}"] = Entry(Mine, "a method of my own")
if __name__ == "__main__":
    raise RuntimeError("this part is for scripts")
"""
SMALL: dict[str, Any] = {
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "training": {"epochs": 1},
    "checkpoint_every": 1,
    "threads": 1,
}
OPTIONS = "--benchmark synthetic --width 8 --epochs 1 --threads 1"


class Crash(BaseException):
    """Stands for a killed process."""


def crash_after_some_steps(work: Run, event: Event) -> None:
    if work.loop.steps > 3:
        raise Crash


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(METHOD.format(name="mine"))
    return file


def in_a_process(*arguments: str) -> str:
    """The output of a command in a process that has imported nothing yet."""
    command = [sys.executable, "-m", "liderlab", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names() -> list[list[str]]:
    return [list(registry) for registry in REGISTRIES]


def test_a_run_with_a_method_of_a_file(mine: Path, lider: Lider) -> None:
    code, out, err = lider(*f"run --import mine.py --method mine --out x {OPTIONS}".split())
    assert code == 0, err
    run(make_config(SMALL, {"method": "er"}), "er")
    result = RunFolder("x").result()
    checksum = hashlib.sha256(mine.read_bytes()).hexdigest()
    assert result["imports"] == [{"name": str(mine), "sha256": checksum}]
    assert RunFolder("x").state()["origin"]["imports"] == result["imports"]
    assert result["config"]["imports"] == [str(mine)]
    assert result["class_incremental"] == RunFolder("er").result()["class_incremental"]
    assert RunFolder("er").result()["imports"] == []
    out = " ".join(lider("show", "x")[1].split())
    assert f"imported file: {mine}" in out
    assert not list(mine.parent.glob("**/*.pyc"))


@pytest.mark.slow
def test_other_processes_go_on_with_a_run_and_use_it(mine: Path) -> None:
    config = make_config(SMALL, {"imports": ["mine.py"], "method": "mine"})
    run(config, "whole")
    with pytest.raises(Crash):
        run(config, "x", listener=crash_after_some_steps)
    assert "stopped" in in_a_process("runs", ".")
    in_a_process("resume", "x")
    assert compare(RunFolder("whole"), RunFolder("x")) == []
    in_a_process("export", "x", "--out", "x.pt2")
    assert load("x").names == load("whole").names


def test_a_complete_configuration_names_the_file(mine: Path, lider: Lider) -> None:
    Path("run.yaml").write_text(yaml.dump({**SMALL, "imports": ["mine.py"], "method": "mine"}))
    in_a_process("run", "--config", "run.yaml", "--out", "x")
    in_a_process("run", "--config", "x/config.yaml", "--out", "y")
    assert compare(RunFolder("x"), RunFolder("y")) == []


@pytest.mark.parametrize("finished", [False, True])
def test_a_changed_file_is_refused(mine: Path, lider: Lider, finished: bool) -> None:
    config = make_config(SMALL, {"imports": ["mine.py"], "method": "mine"})
    with pytest.raises(Crash):
        run(config, "x", listener=crash_after_some_steps)
    if finished:
        run(config, "x", existing="resume")
    first = RunFolder("x").state()["origin"]["imports"]
    mine.write_text(mine.read_text() + "\n# another version\n")
    before = {p: p.read_bytes() for p in Path("x").rglob("*") if p.is_file()}
    code, _, err = lider("resume", "x")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert f"x was begun with other imports, {mine} (sha256 {first[0]['sha256'][:16]})" in err
    assert before == {p: p.read_bytes() for p in Path("x").rglob("*") if p.is_file()}
    code, _, err = lider("resume", "x", "--allow-changed-imports")
    assert code == 0, err
    result = RunFolder("x").result()
    if not finished:
        assert result["imports_before"] == first
        assert result["imports"] != first


def test_a_file_may_move(mine: Path, lider: Lider) -> None:
    config = make_config(SMALL, {"imports": ["mine.py"], "method": "mine"})
    with pytest.raises(Crash):
        run(config, "x", listener=crash_after_some_steps)
    Path("code").mkdir()
    mine.rename("code/mine.py")
    command = [sys.executable, "-m", "liderlab", "resume", "x"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"lider: cannot import {mine}: No such file or directory\n"
    assert "stopped" in in_a_process("runs", ".")
    in_a_process("resume", "x", "--import", "code/mine.py")
    result = RunFolder("x").result()
    assert result["imports"][0]["name"] == str(mine.parent / "code/mine.py")
    assert "imports_before" not in result


BAD = {
    "raises": ("x = 1\nx.y", "AttributeError in line 2: 'int' object has no attribute 'y'"),
    "deeper": ("def f():\n  raise KeyError(3)\nf()", "KeyError in line 2: 3"),
    "grammar": ("x = 1\nx = (", "SyntaxError in line 2: '(' was never closed"),
    "needs": ("import nothing_of_that_name", "ModuleNotFoundError in line 1: No module named"),
    "leaves": ("import sys\nsys.exit(3)", "SystemExit in line 2: 3"),
    "nothing": ("x = 1", "registers nothing (backbone, benchmark, method, regularizer)"),
    "ours": (METHOD.format(name="er"), "registers method 'er', a name that liderlab itself has"),
    "again": (METHOD.format(name="mine"), "registers method 'mine', a name that /"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_in_one_sentence(case: str, mine: Path, lider: Lider) -> None:
    text, says = BAD[case]
    Path("bad.py").write_text(text)
    known = names()
    er = METHODS["er"]
    files = sorted(mine.parent.rglob("*"))
    arguments = "--import mine.py --import bad.py --method mine --out x"
    code, out, err = lider("run", *arguments.split())
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert str(mine.parent / "bad.py") in err
    assert says in err
    assert sorted(mine.parent.rglob("*")) == files
    assert names() == [[*known[0], "mine"], *known[1:]]
    assert METHODS["er"] is er


@pytest.mark.parametrize(
    ("imports", "says"),
    [
        (["gone.py"], "cannot import .*gone.py: No such file or directory"),
        (["."], "cannot import .*: Is a directory"),
        ("mine.py", "imports must be a list of files"),
        ([3], "imports must be a list of files"),
        (None, "imports must be a list of files"),
    ],
)
def test_bad_fields(imports: Any, says: str, mine: Path) -> None:
    with pytest.raises(UserError, match=says):
        make_config(SMALL, {"imports": imports})


def test_a_name_needs_its_file(mine: Path) -> None:
    """This process knows it from another run; a worker would not."""
    make_config({"imports": ["mine.py"], "method": "mine"})
    with pytest.raises(UserError, match=r"method 'mine' is in .*mine\.py: add that file"):
        make_config({"method": "mine"})


def test_a_file_is_executed_once_for_every_content(mine: Path) -> None:
    count = mine.parent / "count"
    counting = f"\nwith open({str(count)!r}, 'a') as file:\n    file.write('x')"
    mine.write_text(mine.read_text() + counting)
    for _ in range(3):
        config = make_config(SMALL, {"imports": ["mine.py", str(mine)], "method": "mine"})
    assert config.imports == [str(mine)]
    assert count.read_text() == "x"
    mine.write_text(mine.read_text().replace("'x'", "'y'").replace('"mine"', '"other"'))
    load_imports(config.imports)
    assert count.read_text() == "xy"
    assert "other" in METHODS
    assert "mine" not in METHODS


def test_an_entry_needs_no_facts(mine: Path, lider: Lider) -> None:
    mine.write_text(
        METHOD.format(name="mine")
        + """
from liderlab import BACKBONES, BENCHMARKS, REGULARIZERS
from liderlab.backbones.convnet import ConvNet
from liderlab.regularizers.oewc import OEWC
from liderlab.streams.datasets.synthetic import synthetic

BACKBONES["mine"] = Entry(ConvNet, "")
BENCHMARKS["mine"] = Entry(synthetic, "")
REGULARIZERS["mine"] = Entry(OEWC, "")
"""
    )
    options = "--benchmark mine --tasks 3 --backbone mine --regularizer mine --epochs 1"
    code, _, err = lider(*f"run --import mine.py --method mine --out x {options}".split())
    assert code == 0, err
    for command in ("show x", "runs .", "list", "report x"):
        code, _, err = lider(*command.split())
        assert code == 0, f"{command}: {err}"


def test_names_of_a_script_keep_working(tmp_path: Path) -> None:
    METHODS["script"] = Entry(METHODS.load("er"), "registered by this process")
    run(make_config(SMALL, {"method": "script"}), tmp_path / "x")
    assert RunFolder(tmp_path / "x").finished
