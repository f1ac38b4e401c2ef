"""The package is cheap to import, and every public name is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import liderlab

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "numpy", "sklearn", "matplotlib", "plotly", "ray", "PIL")


def loaded_by(statement: str) -> set[str]:
    """Which heavy packages a fresh interpreter has loaded after this statement."""
    code = f"import sys; {statement}; print(*[m for m in {HEAVY} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import liderlab",
        "from liderlab import METHODS, REGULARIZERS, BACKBONES, BENCHMARKS",
        "import liderlab.cli",
    ],
)
def test_registries_and_the_command_line_load_nothing_heavy(statement: str) -> None:
    assert loaded_by(statement) == set()


def test_lider_itself_needs_torch_and_nothing_else_heavy() -> None:
    assert loaded_by("from liderlab import LiDER") <= {"torch", "numpy"}


@pytest.mark.parametrize("name", liderlab.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(liderlab, name) is not None
    assert name in dir(liderlab)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="'liderlab' has no attribute 'lidar'"):
        liderlab.lidar  # noqa: B018


@pytest.mark.slow
def test_type_checkers_know_every_public_name(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"from liderlab import {', '.join(liderlab.__all__)}\n"
        f"{'; '.join(f'reveal_type({name})' for name in liderlab.__all__)}\n"
        "reveal_type(run(method='er-ace', lider=True, buffer=100).faa)\n"
        "reveal_type(load('runs/x'))\n"
        "run(bufer=100)\n"
    )
    # mypy runs where it finds the project's settings, and with its cache
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout
    assert len(re.findall(r":2: note: Revealed type is", checked)) == len(liderlab.__all__)
    assert 'type is "Any"' not in checked
    assert ':3: note: Revealed type is "float"' in checked.replace("builtins.", "")
    assert ':4: note: Revealed type is "liderlab.runs.load.TrainedNetwork"' in checked
    assert ':5: error: Unexpected keyword argument "bufer" for "run"' in checked
    assert checked.count("error:") == 1, checked
    known = re.findall(r"import (?:\w+ as )?(\w+)$", Path(liderlab.__file__).read_text(), re.M)
    assert set(liderlab.__all__) - {"__version__"} <= set(known)
