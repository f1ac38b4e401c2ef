from pathlib import Path
from typing import Any

from PIL import Image

from liderlab.report.accuracy_curves import draw_accuracy_curves
from liderlab.report.run_records import accuracy_so_far


def result(matrix: list[list[float | None]]) -> dict[str, Any]:
    return {
        setting: {"faa": 70.0, "accuracy_matrix": matrix}
        for setting in ("class_incremental", "task_incremental")
    }


FORGETS = result([[90.0, None], [60.0, 80.0]])
JOINT = result([[None, None], [95.0, 97.0]])


def test_accuracy_curves_are_drawn(tmp_path: Path) -> None:
    draw_accuracy_curves({"a": [FORGETS, FORGETS], "joint": [JOINT]}, tmp_path / "c.png", "title")
    with Image.open(tmp_path / "c.png") as picture:
        assert picture.width > 800
        colours = picture.getcolors(1 << 20)
        assert colours is not None
        assert len(colours) > 50


def test_accuracy_so_far_by_hand() -> None:
    forgets, joint = (r["class_incremental"]["accuracy_matrix"] for r in (FORGETS, JOINT))
    assert accuracy_so_far(forgets) == [90.0, 70.0]
    assert accuracy_so_far(joint) == [None, 96.0]
