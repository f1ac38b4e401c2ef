"""SIGKILL, for real, as users can do it themselves with `lider verify-resume`."""

import subprocess
import sys

import pytest
import torch

from liderlab.config.compatibility import why_not
from liderlab.methods import METHODS
from liderlab.runs.resume_proof import unequal

SMALL = ["--benchmark", "synthetic", "--width", "8", "--threads", "1", "--epochs", "4"]
QUICK = {"gdumb": ["--set", "method.fit_epochs=8"]}


def verify(method: str, *arguments: str, kills: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "liderlab", "verify-resume", "--kills", str(kills)]
    options = [*SMALL, "--method", method, *QUICK.get(method, []), *arguments]
    return subprocess.run([*command, *options], capture_output=True, text=True)


def test_er_ace_with_lider_survives_two_kills() -> None:
    done = verify("er-ace", "--lider", kills=2)
    assert done.returncode == 0, done.stderr
    assert "2 kills" in done.stdout
    assert "nothing differs" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("lider", [[], ["--lider"]], ids=["plain", "lider"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_survives_kills(method: str, lider: list[str]) -> None:
    if lider and why_not(method, "lider", {}):
        if reason := why_not(method, "lider", {"on": "stream"}):
            pytest.skip(reason)
        lider = [*lider, "--lider-on", "stream"]
    done = verify(method, *lider, kills=11)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 kills" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("method", ["er", "gmed", "x-der-rpc", "icarl", "gdumb"])
def test_a_memory_on_disk_survives_kills(method: str) -> None:
    done = verify(method, "--memory-storage", "disk", kills=11)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 kills" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [["--precision", "bfloat16"], ["--precision", "float16"], ["--set", "compile=aot_eager"]],
    ids=["bfloat16", "float16", "compiled"],
)
def test_half_precision_and_compiled_runs_survive_kills(how: list[str]) -> None:
    done = verify("er-ace", "--lider", *how, kills=3)
    assert done.returncode == 0, done.stdout + done.stderr


def test_bad_options_are_one_sentence() -> None:
    done = verify("er_ace", kills=1)
    assert done.returncode == 2
    assert "did you mean 'er-ace'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_empty_tensors_with_other_strides_are_equal() -> None:
    """A method without memory has empty columns, which are loaded with other strides."""
    empty = torch.empty_strided((0,), (0,), dtype=torch.int64)
    assert unequal({"y": empty}, {"y": torch.zeros(0, dtype=torch.int64)}, "memory") == []
    assert unequal({"y": empty}, {"y": torch.zeros(0)}, "memory") == ["memory.y"]
    assert unequal(torch.zeros(2), -torch.zeros(2), "x") == ["x"]  # to the bit
