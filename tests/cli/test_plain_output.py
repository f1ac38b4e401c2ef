"""--json prints JSON; NO_COLOR prints plain text."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liderlab.cli import main

Lider = Callable[..., tuple[int, str, str]]

LISTING = {
    "list": "list",
    "list methods": "list methods",
    "list benchmarks": "list benchmarks",
    "list backbones": "list backbones",
    "list regularizers": "list regularizers",
    "list presets": "list presets cub200",
    "list studies": "list studies",
    "show": "show RUNS/a",
    "predict": "predict RUNS/a RUNS/image.png",
    "runs": "runs RUNS",
    "compare": "compare RUNS/a RUNS/b",
    "watch": "watch RUNS --once",
    "doctor": "doctor --no-self-test",
    "data list": "data list",
    "ledger": "ledger",
    "ledger cells": "ledger cells cifar100",
    "sweep": "sweep RUNS/sweep.yaml --dry-run",
    "analyze": "analyze guessing-game RUNS/a --scale smoke --out RUNS/analysis",
    "bench": "bench herding --quick --threads 1 --out RUNS/bench.json",
}
ELSEWHERE = {
    "search",
    "study",
    "ledger check",
}  # in their own tests, because they train
"""Commands with --json, tested here or elsewhere; the others are in NOT_LISTING."""

NOT_LISTING = {
    "run",  # lider show --json
    "resume",
    "extend",
    "verify-resume",
    "pretrain",
    "demo",  # lider runs demo --json
    "report",
    "export",
    "import-mammoth",
    "data prepare",
    "ledger measure",
    "ledger collect",
}


def test_every_command_that_lists_something_takes_json(commands: dict[str, Any]) -> None:
    """A new command joins LISTING, with --json, or NOT_LISTING."""
    with_json = {name for name, c in commands.items() if any("--json" in p.opts for p in c.params)}
    assert with_json == set(commands) - NOT_LISTING
    assert with_json - ELSEWHERE == {name for name in commands if name in LISTING}
    assert set(commands) > NOT_LISTING


def words(line: str, runs: Path) -> list[str]:
    return line.replace("RUNS", str(runs)).split()


@pytest.mark.parametrize("line", LISTING.values(), ids=LISTING)
def test_plain_and_json(
    lider: Lider, in_terminal: Any, some_runs: Path, tmp_path: Path, line: str, monkeypatch: Any
) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("liderlab.runs.doctor.ROOM", 0)
    command = words(line, some_runs)
    code, shown = in_terminal(*command, NO_COLOR="1")
    assert code == 0
    assert "\x1b" not in shown
    assert shown.strip()
    monkeypatch.delenv("NO_COLOR")
    code, out, err = lider(*command, "--json")  # into a pipe
    assert code == 0, err
    assert "\x1b" not in out + err
    assert json.loads(out) is not None
    assert out.startswith(("{", "["))


def test_without_no_color_a_terminal_has_colours(in_terminal: Any) -> None:
    assert "\x1b[" in in_terminal("list", "methods")[1]


def test_json_stays_json_in_a_terminal(in_terminal: Any, some_runs: Path) -> None:
    for line in ("list", "show RUNS/a", "watch RUNS", "runs RUNS"):
        code, shown = in_terminal(*words(line, some_runs), "--json")
        assert code == 0
        assert json.loads(shown) is not None
        assert "\x1b" not in shown


def test_a_run_without_colours_is_lines(in_terminal: Any) -> None:
    small = "--benchmark synthetic --width 8 --epochs 1 --buffer 20 --threads 1 --out x"
    code, shown = in_terminal("run", *small.split(), NO_COLOR="1")
    assert code == 0
    assert "task 3/3" in shown
    assert "\x1b" not in shown


def test_json_stays_valid_in_an_encoding_that_lacks_characters(
    lider: Lider, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lider("list", "studies", "--json")[1]
    assert not whole.isascii()
    with io.TextIOWrapper(io.BytesIO(), encoding="ascii") as narrow:
        monkeypatch.setattr(sys, "stdout", narrow)
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        narrow.flush()
        written = narrow.buffer.getvalue()  # type: ignore[attr-defined]
    assert json.loads(written) == json.loads(whole)
