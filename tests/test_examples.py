"""The examples run as they stand."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES, TUTORIAL = sorted(FOLDER.glob("*.py")), FOLDER / "tutorial.ipynb"
QUICK = ("own_loop", "custom_method", "custom_regularizer")
NEEDS = {
    "avalanche_plugin": "avalanche",
    "lightning_module": "lightning",
    "timm_backbone": "timm",
}


@pytest.mark.parametrize(
    "example",
    [e if e.stem in QUICK else pytest.param(e, marks=pytest.mark.slow) for e in EXAMPLES],
    ids=lambda path: path.stem,
)
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
    last = [line for line in done.stdout.splitlines() if " %" in line][-1]
    accuracies = [float(number) for number in re.findall(r"([\d.]+) %", last)]
    assert min(accuracies) > 25  # chance is 10 to 17 %


EXECUTE = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, "executed.ipynb")
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("nbclient") is None, reason="nbclient is not installed")
def test_tutorial_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(TUTORIAL)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "IPYTHONDIR": str(tmp_path / "ipython")},
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads((tmp_path / "executed.ipynb").read_bytes())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert "image/png" in kinds
    shown = json.dumps(outputs, ensure_ascii=False)
    for text in ('<progress value=\\"1.0000', "er-ace on folder", "<table>"):
        assert text in shown
    assert "er-ace: FAA" in shown
    for method in ("er-ace", r"der\+\+"):
        assert re.search(rf"LiDER \w+ [\d.]+ ± [\d.]+ points \w+ {method} on folder", shown)
    assert not [output for output in outputs if output.get("name") == "stderr"]
    results = [json.loads(file.read_bytes()) for file in tmp_path.rglob("result.json")]
    assert len(results) == 10
    for result in results:
        assert result["classes"] == ["five", "four", "one", "six", "three", "two", "zero"]
    for page in ("tutorial/sweep/report.html", "tutorial/report.html"):
        assert (tmp_path / page).is_file()


def test_tutorial_is_stored_without_outputs() -> None:
    for cell in json.loads(TUTORIAL.read_bytes())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert len(cell["source"]) < 15


def test_own_loop_is_short() -> None:
    own_loop = next(path for path in EXAMPLES if path.stem == "own_loop")
    assert len(own_loop.read_text().splitlines()) < 60
