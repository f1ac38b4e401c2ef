"""Tab completes commands, options and values, in every shell, without loading anything heavy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from liderlab.cli import completion
from liderlab.config.presets import presets
from liderlab.methods import METHODS
from liderlab.paper.studies import STUDIES

HEAVY = ("torch", "numpy", "sklearn", "matplotlib", "ray", "optuna")
PROGRAM = f"""\
#!{sys.executable}
import sys
from liderlab.__main__ import main
try:
    main()
finally:
    heavy = [name for name in {HEAVY} if name in sys.modules]
    assert not heavy, heavy
"""
Complete = Callable[..., str]


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    """The command `lider` in a folder of its own; an environment that finds it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "lider").write_text(PROGRAM)
    (folder / "lider").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def ask(program: dict[str, str], folder: Path, **environment: str) -> list[str]:
    done = subprocess.run(
        ["lider"], env={**program, **environment}, cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def bash(program: dict[str, str], folder: Path, line: str) -> list[str]:
    words = line.split(" ")
    number = str(len(words) - 1)
    return ask(program, folder, _LIDER_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=number)


def test_commands_options_and_values(program: dict[str, str], tmp_path: Path) -> None:
    for name in ("runs/a/one", "runs/two"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.yaml").touch()
    assert bash(program, tmp_path, "lider ru") == ["run", "runs"]
    assert "--lider-alpha" in bash(program, tmp_path, "lider run --li")
    assert bash(program, tmp_path, "lider run --method ") == list(METHODS)
    assert bash(program, tmp_path, "lider run --preset ") == list(presets())
    assert bash(program, tmp_path, "lider study ") == list(STUDIES)
    assert bash(program, tmp_path, "lider show runs/") == ["runs/a/one", "runs/two"]


def test_zsh_and_fish_get_explanations_too(program: dict[str, str], tmp_path: Path) -> None:
    line = {"_TYPER_COMPLETE_ARGS": "lider run --method er-"}
    zsh = ask(program, tmp_path, _LIDER_COMPLETE="complete_zsh", **line)
    assert '"er-ace":"ER whose stream loss' in "\n".join(zsh)
    action = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    fish = ask(program, tmp_path, _LIDER_COMPLETE="complete_fish", **line, **action)
    assert fish[0].startswith("er-ace\tER whose stream loss")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_completion_script(
    program: dict[str, str], tmp_path: Path, shell: str
) -> None:
    script = "\n".join(ask(program, tmp_path, _LIDER_COMPLETE=f"source_{shell}"))
    assert f"_LIDER_COMPLETE=complete_{shell}" in script


def test_completion_is_installed_for_the_calling_shell(
    program: dict[str, str], tmp_path: Path
) -> None:
    """The installed script completes: its function is called, as Tab would."""
    shell = shutil.which("bash")
    assert shell
    for option in ("--show-completion", "--install-completion"):
        done = subprocess.run(  # two commands, or bash would become the program
            [shell, "-c", f"lider {option}; true"],
            env=program,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        assert "completion" in done.stdout
    assert "lider" in (tmp_path / ".bashrc").read_text()
    script = next((tmp_path / ".bash_completions").iterdir())
    press_tab = (
        f'source "{script}"; COMP_WORDS=(lider run --benchmark split-c); COMP_CWORD=3; '
        '_lider_completion lider; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        [shell, "-c", press_tab], env=program, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split() == ["split-cifar100", "split-cub200", "split-cifar10"], done.stderr


def test_run_folders_are_found_below_the_typed_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("runs/x", "runs/deep/er/seed 0", ".hidden/y", "runs/x/checkpoints"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("runs/x", "runs/deep/er/seed 0", ".hidden/y"):
        (tmp_path / name / "config.yaml").touch()
    (tmp_path / "runs/x/result.json").touch()
    both = [("runs/deep/er/seed 0", "unfinished"), ("runs/x", "finished")]
    assert completion.run_folders("") == both
    assert completion.run_folders("ru") == both
    assert completion.run_folders("runs/x") == both[1:]
    assert completion.run_folders("./runs/x") == [("./runs/x", "finished")]
    assert completion.run_folders(f"{tmp_path}/runs/x") == [(f"{tmp_path}/runs/x", "finished")]
    assert completion.run_folders(".hidden/") == [(".hidden/y", "unfinished")]
    assert completion.run_folders("nowhere/") == []
    monkeypatch.chdir("runs/x")
    assert completion.run_folders("") == []
    monkeypatch.setattr(completion, "MOST_FOLDERS", 3)
    assert completion.run_folders("../") == [("../x", "finished")]


def test_kept_weights_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIDER_DATA", str(tmp_path))
    assert [name for name, _ in completion.weights("")] == ["imagenet"]
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/mine.pt").touch()
    assert [name for name, _ in completion.weights("")] == ["imagenet", "mine"]
