"""The package is cheap to import, and every public name is there."""

import subprocess
import sys

import pytest

import liderlab

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
