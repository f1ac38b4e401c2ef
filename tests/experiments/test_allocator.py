"""Freed memory is kept, unless the user has said otherwise."""

import platform
import subprocess
import sys

import pytest

from liderlab.experiments.allocator import VARIABLES, keep_freed_memory

FAULTS = """
import resource
from liderlab.experiments.allocator import keep_freed_memory
import torch

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        kept = [torch.ones(2**22) for _ in range(4)]  # 64 MB, as a step's activations
        del kept
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
faults()
before = faults()
agreed = keep_freed_memory()
faults()
print(agreed, before, faults())
"""


@pytest.mark.parametrize("name", VARIABLES)
def test_the_users_own_choice_counts(monkeypatch, name) -> None:
    monkeypatch.setenv(name, "1")
    assert keep_freed_memory() is False


def test_other_systems_are_left_alone(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to")
def test_pages_are_not_fetched_anew(monkeypatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    run = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    agreed, before, after = run.stdout.split()
    assert agreed == "True"
    if int(before) == 0:
        pytest.skip("this system fetches no pages anew in any case")
    assert int(after) < int(before) / 10
