"""The command `lider` itself: help, version, start-up, errors of the system."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_a_group_without_a_command_shows_its_help(lider, arguments) -> None:
    code, out, err = lider(*arguments)
    assert (code, err) == (0, "")
    assert out.split() == lider(*arguments, "--help")[1].split()


def test_version_and_help(lider) -> None:
    assert lider("--version")[1] == "lider 0.1.0\n"
    code, out, _ = lider("run", "--help")
    assert code == 0
    assert "--buffer" in out


@pytest.mark.parametrize("arguments", [["--help"], ["list", "benchmarks"], ["list", "presets"]])
def test_help_and_lists_import_no_torch(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom liderlab.cli import main\n"
        f"sys.argv = ['lider', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = {'torch', 'sklearn', 'matplotlib', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "reader", ["list --json | head -c 1", "list presets | true", "--version | true"]
)
def test_a_closed_pipe_is_no_error(reader: str) -> None:
    command = f"{sys.executable} -m liderlab {reader}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""


def test_module_runs_like_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "liderlab", "--version"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.stdout == "lider 0.1.0\n"


def test_an_error_of_the_disk_is_one_line(lider, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = lider("verify-resume", "--keep", "file/x")
    assert (code, err) == (1, "lider: file/x: Not a directory\n")
