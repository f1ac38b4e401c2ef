"""Signals at the start of the command."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

SIGNALS = [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
each_signal = pytest.mark.parametrize(("number", "code", "word"), SIGNALS)


def start(folder: Path, preparation: str) -> subprocess.CompletedProcess[str]:
    """`lider run` in a process whose preparation makes a signal arrive at one moment."""
    program = (
        "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"{preparation}\nfrom liderlab.__main__ import main\n"
        "sys.argv = ['lider', 'run', '--out', 'x']\nmain()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=120
    )


@each_signal
@pytest.mark.parametrize("module", ["typer", "torch"])
def test_a_signal_during_an_import_is_one_line(
    tmp_path: Path, module: str, number: signal.Signals, code: int, word: str
) -> None:
    done = start(
        tmp_path,
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        f"            os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Finder())",
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"lider: {word}\n")
    assert list(tmp_path.iterdir()) == []


@each_signal
def test_a_signal_while_a_run_is_being_built_is_one_line(
    tmp_path: Path, number: signal.Signals, code: int, word: str
) -> None:
    done = start(
        tmp_path,
        "import liderlab.runs.execute as run\n"
        f"run.build = lambda *_: os.kill(os.getpid(), {int(number)})",
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"lider: {word}\n")
    assert list(tmp_path.iterdir()) == []


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    done = start(
        tmp_path,
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import liderlab.runs.execute as run\n"
        "from liderlab.errors import UserError\n"
        "def build(config, *rest):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    raise UserError('still here')\n"
        "run.build = build",
    )
    assert (done.returncode, done.stderr) == (2, "lider: still here\n")
