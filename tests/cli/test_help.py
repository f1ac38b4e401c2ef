"""Every command explains itself, truthfully."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from liderlab.bench.measures import MEASURES
from liderlab.cli import bench
from liderlab.cli.commands import HEADINGS
from liderlab.config.merging import make_config
from liderlab.regularizers.lider import LiDER

Lider = Callable[..., tuple[int, str, str]]
Commands = dict[str, Any]


def test_help_says_what_a_command_does_reads_and_writes(commands: Commands, command: str) -> None:
    text = commands[command].help
    assert text
    summary, _, rest = text.partition("\n\n")
    assert summary.endswith(".")
    assert len(summary) <= 62  # one line of `lider --help` in 80 columns
    assert re.search(r"\b[Rr]ead", rest)
    assert re.search(r"\b[Ww]rites?\b", rest)


def test_every_option_and_argument_is_explained(commands: Commands, command: str) -> None:
    missing = [p.name for p in commands[command].params if not getattr(p, "help", None)]
    assert not missing


def test_examples_are_valid(commands: Commands, command: str, parse: Any) -> None:
    examples = (commands[command].epilog or "").splitlines()
    assert any(line.startswith(f"lider {command}") for line in examples)
    for line in examples:
        parse(line)


def test_invalid_examples_fail_the_test(parse: Any) -> None:
    for line in ("lider show", "lider run --bufer 3", "lider verify-resume --methd er"):
        with pytest.raises(Exception, match=r"(?i)missing|no such option"):
            parse(line)


def fits_80_columns(lider: Lider, name: str) -> None:
    code, out, err = lider(*name.split(), "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "  -h, --help" in out


def test_help_fits_80_columns(lider: Lider, command: str) -> None:
    fits_80_columns(lider, command)


@pytest.mark.parametrize("group", ["", "data", "ledger"])
def test_help_of_groups_fits_80_columns(lider: Lider, group: str) -> None:
    fits_80_columns(lider, group)


def test_help_uses_the_width_of_the_terminal(lider: Lider, monkeypatch: pytest.MonkeyPatch) -> None:
    heights = []
    for columns in ("60", "80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        lines = lider("run", "--help")[1].splitlines()
        assert max(map(len, lines[:-4])) <= int(columns)  # examples are not broken
        heights.append(len(lines))
    assert heights == sorted(set(heights), reverse=True)


def test_help_is_bold_in_a_terminal_unless_no_color(in_terminal: Any) -> None:
    assert "\x1b[1mExamples:\x1b[0m" in in_terminal("show", "--help")[1]
    for how in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, plain = in_terminal("show", "--help", **how)
        assert (code, "\x1b" in plain) == (0, False)
        assert "\nExamples:\n  lider show runs/x\n" in plain


def test_exit_codes_and_all_commands_are_in_the_main_help(lider: Lider, commands: Commands) -> None:
    out = lider("--help")[1]
    assert re.findall(r"^  (\d+) ", out.partition("Exit codes:")[2], re.MULTILINE) == [
        *("0", "1", "2", "130")
    ]
    listed = re.findall(r"^  ([a-z-]+)  ", out.partition("\nOptions:")[0], re.MULTILINE)
    assert set(listed) == {name.split()[0] for name in commands}
    headings = re.findall(r"^(.+):$", out.partition("\nOptions:")[0], re.MULTILINE)
    assert headings == list(HEADINGS)


DEFAULTS = {
    "benchmark": "benchmark.name",
    "method": "method.name",
    "class_order": "benchmark.class_order",
    "memory_storage": "memory.storage",
    "seed": "seed",
    "device": "device",
    "precision": "precision",
    "evaluate": "evaluate",
    "checkpoint_every": "checkpoint_every",
    "on_nonfinite": "on_nonfinite",
}


def test_the_defaults_in_help_are_the_real_ones(commands: Commands) -> None:
    told = {p.name: p.show_default for p in commands["run"].params}
    tree = make_config().model_dump(mode="json")
    for option, field in DEFAULTS.items():
        value: Any = tree
        for key in field.split("."):
            value = value[key]
        assert told[option] == str(value), option
    of_lider = inspect.signature(LiDER.__init__).parameters
    for name in ("alpha", "beta", "on", "draw"):
        assert told[f"lider_{name}"] == str(of_lider[name].default)
    assert told["lider_targets"] == {True: "learned"}[of_lider["learn_targets"].default]


def test_options_of_run_are_in_groups(commands: Commands) -> None:
    assert not [p.name for p in commands["run"].params if not p.rich_help_panel]


def test_bench_names_all_measures() -> None:
    assert list(bench.NAMES) == list(MEASURES)
