"""The examples run as they stand."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
NEEDS = {
    "avalanche_plugin": "avalanche",
    "lightning_module": "lightning",
    "timm_backbone": "timm",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    needed = NEEDS.get(example.stem)
    if needed and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    done = subprocess.run(
        [sys.executable, str(example)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert " %" in done.stdout


def test_own_loop_is_short() -> None:
    own_loop = next(path for path in EXAMPLES if path.stem == "own_loop")
    assert len(own_loop.read_text().splitlines()) < 60
