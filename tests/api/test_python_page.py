"""The code on the page about the Python API runs as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs/python.md"


def test_code_on_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        exec(block, names)
    assert str(names["result"].folder) == "runs/split-digits-er-ace-lider-seed0"
    assert names["again"]["config"]["training"]["momentum"] == 0.5
    assert names["sweep"].groups == ["plain", "lider"]
    assert names["gain"].difference("faa").n == 2
    assert "B − A" in capsys.readouterr().out
