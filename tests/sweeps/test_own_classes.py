"""Classes of an imported file in sweeps, searches, their workers, and the ranks of a run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liderlab.runs.folder import RunFolder

pytestmark = pytest.mark.usefixtures("fresh_registries")
Lider = Callable[..., tuple[int, str, str]]

FILE = """
from liderlab import METHODS
from liderlab.methods.er import ER
from liderlab.registry import Entry


class Mine(ER):
    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()


METHODS["mine"] = Entry(Mine, "a method of my own")
"""
TINY: dict[str, Any] = {
    "imports": ["mine.py"],
    "method": "mine",
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "training": {"epochs": 1},
}


@pytest.fixture
def mine(tmp_path: Path, lider: Lider, write: Callable[..., Any]) -> Path:
    """The file, and a sweep of two runs with it, in the working directory."""
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    write("sweep.yaml", {"base": TINY, "grid": {"method.weight": [1.0, 2.0]}})
    return file


@pytest.mark.parametrize(
    "engine",
    [
        "local",
        pytest.param("slurm --slurm cluster=local", marks=pytest.mark.slow),
        pytest.param("ray", marks=pytest.mark.slow),
    ],
)
def test_workers_import_the_file(engine: str, mine: Path, lider: Lider) -> None:
    if engine != "local":
        pytest.importorskip("ray" if engine == "ray" else "submitit")
    code, out, err = lider(*f"sweep sweep.yaml --out s --workers 1 --engine {engine}".split())
    assert code == 0, err + out
    folders = sorted(Path("s/runs").iterdir())
    assert len(folders) == 2
    for folder in folders:
        assert RunFolder(folder).result()["imports"][0]["name"] == str(mine)


def test_a_bad_file_in_a_sweep_is_one_sentence(mine: Path, lider: Lider) -> None:
    mine.write_text("1 / 0")
    code, out, err = lider("sweep", "sweep.yaml", "--out", "s")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "mine.py: ZeroDivisionError in line 1: division by zero" in err
    assert not Path("s").exists()


def test_a_search_tries_options_of_the_file(mine: Path, lider: Lider, write: Any) -> None:
    pytest.importorskip("optuna", reason="needs Optuna: pip install 'liderlab[search]'")
    write("base.yaml", {name: value for name, value in TINY.items() if name != "imports"})
    write("space.yaml", {"method.weight": [1.0, 2.0]})
    command = "search --import mine.py --config base.yaml --space space.yaml --sampler grid"
    code, _, err = lider(*f"{command} --workers 1 --out s".split())
    assert code == 0, err
    assert RunFolder("s/trials/0").result()["imports"][0]["name"] == str(mine)
    code, _, err = lider("run", "--config", "s/best.yaml", "--out", "best")
    assert code == 0, err
    mine.write_text(mine.read_text() + "# another version")
    code, _, err = lider(*f"{command} --workers 1 --out s".split())
    assert code == 2
    assert "searches around another configuration" in err


def test_ranks_import_the_file(mine: Path) -> None:
    options = "--benchmark synthetic --width 8 --epochs 1 --devices 2 --device cpu --out x"
    command = [sys.executable, "-m", "liderlab", "run", "--import", "mine.py", "--method", "mine"]
    done = subprocess.run([*command, *options.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = RunFolder("x").result()
    assert result["parallel"]["devices"] == 2
    assert result["imports"][0]["name"] == str(mine)
