import json
from pathlib import Path
from typing import Any

import pytest

from liderlab.runs.accuracy_figure import NAME, accuracy_figure, draw_accuracy_matrix, leave_figure
from liderlab.runs.folder import FILES

RESULT: dict[str, Any] = {
    setting: {"faa": 70.0, "accuracy_matrix": [[90.0, None], [60.0, 80.0]]}
    for setting in ("class_incremental", "task_incremental")
}
RESULT["config"] = {
    "method": {"name": "er-ace"},
    "regularizers": {"lider": {}},
    "benchmark": {"name": "split-digits"},
    "memory": {"size": 50},
    "seed": 3,
}


@pytest.mark.parametrize("name", ["a.png", "a.pdf"])
def test_figures_are_drawn(tmp_path: Path, name: str) -> None:
    draw_accuracy_matrix(RESULT, tmp_path / name)
    assert (tmp_path / name).stat().st_size > 3000


def test_the_heading_names_data_scale_and_seed() -> None:
    _, facts = accuracy_figure(RESULT).texts
    assert facts.get_text() == ("er-ace + lider · split-digits · buffer 50 · scale full · seed 3")


def test_an_existing_figure_is_kept(tmp_path: Path) -> None:
    assert NAME in FILES  # --force removes it with the rest
    (tmp_path / "result.json").write_text(json.dumps(RESULT))
    leave_figure(RESULT, tmp_path)
    assert (tmp_path / NAME).stat().st_size > 3000
    (tmp_path / NAME).write_bytes(b"kept")
    leave_figure(RESULT, tmp_path)
    assert (tmp_path / NAME).read_bytes() == b"kept"


def test_a_folder_of_another_run_gets_no_figure(tmp_path: Path) -> None:
    """Since the result was written, another run may have begun in the folder."""
    leave_figure(RESULT, tmp_path)
    (tmp_path / "result.json").write_text(json.dumps({**RESULT, "seconds": 1.0}))
    leave_figure(RESULT, tmp_path)
    assert not (tmp_path / NAME).exists()
