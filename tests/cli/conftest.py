"""Every command by name, a parser of command lines, and a terminal."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer.main
from PIL import Image
from typer.core import TyperCommand, TyperGroup

from liderlab.cli import app, main
from liderlab.config.merging import make_config
from liderlab.runs.execute import run

ROOT = typer.main.get_command(app)


def leaves(group: TyperGroup, path: str = "") -> Iterator[tuple[str, TyperCommand]]:
    """Every command that is not a group, by its full name: ("data list", …)."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from leaves(command, f"{path}{name} ")
        else:
            assert isinstance(command, TyperCommand)
            yield f"{path}{name}", command


COMMANDS = dict(leaves(ROOT))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `command` runs once for every command."""
    if "command" in metafunc.fixturenames:
        metafunc.parametrize("command", COMMANDS)


@pytest.fixture
def commands() -> dict[str, TyperCommand]:
    return COMMANDS


@pytest.fixture
def parse() -> Callable[[str], Any]:
    """Parse a command line with the real parser, without running it."""

    def parse(line: str) -> Any:
        words = shlex.split(line)
        assert words[0] == "lider", line
        first = ROOT.commands.get(words[1])
        grouped = isinstance(first, TyperGroup)
        if grouped and first.invoke_without_command and [*words, "-"][2].startswith("-"):
            return first.make_context(words[1], words[2:])
        length = 2 if grouped else 1
        name = " ".join(words[1 : 1 + length])
        assert name in COMMANDS, line
        context = COMMANDS[name].make_context(name, words[1 + length :])
        if name == "verify-resume":  # the rest is for lider run
            COMMANDS["run"].make_context("run", list(context.args))
        return context

    return parse


class Terminal:
    """A real one (a pty), whose output is read while it is written."""

    def __init__(self) -> None:
        self._master, self._slave = os.openpty()
        self.stream = os.fdopen(self._slave, "w", encoding="utf-8")
        self._parts: list[bytes] = []
        self._closed = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._master, 65536)
            except OSError:  # the other end is closed, on Linux
                return
            if not part:
                return
            self._parts.append(part)

    def close(self) -> str:
        """The output, with the line ends that the program wrote."""
        if not self._closed:
            self._closed = True
            self.stream.close()
            self._reader.join()
            os.close(self._master)
        return b"".join(self._parts).decode().replace("\r\n", "\n")


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    made = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", made.stream)
        patched.setattr(sys, "stderr", made.stream)
        try:
            yield made.close
        finally:
            made.close()


@pytest.fixture
def in_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Runs a command in a terminal of 80 columns: (exit code, everything that appeared)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")

    def call(*arguments: str, **environment: str) -> tuple[int, str]:
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["lider", *arguments])
        with terminal(monkeypatch) as written, pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), written()

    return call


SMALL: dict[str, Any] = {
    "benchmark": "synthetic",
    "backbone": {"width": 8},
    "memory": {"size": 20},
    "training": {"epochs": 1},
    "threads": 1,
}


@pytest.fixture(scope="session")
def some_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs a and b, an image, and a sweep's file, which tests only read."""
    folder = tmp_path_factory.mktemp("some")
    run(make_config(SMALL, {"method": "er-ace"}), folder / "a")
    run(make_config(SMALL, {"method": "er-ace", "regularizers": {"lider": {}}}), folder / "b")
    Image.new("RGB", (8, 8), (90, 90, 90)).save(folder / "image.png")
    (folder / "sweep.yaml").write_text("base: {benchmark: synthetic}\nseeds: 2\n")
    return folder
