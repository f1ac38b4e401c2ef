"""The campaigns of benchmarks/ at a small count; docs/resume.md has the commands for large ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def campaign(script: str, results: Path, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / script), "--results", str(results), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_kills(tmp_path: Path) -> None:
    options = ["--kills", "4", "--methods", "er", "--ranks", "1"]
    last = campaign("kill_campaign.py", tmp_path / "k", *options)
    assert last.startswith("4 kills (")
    assert last.endswith("0 runs differ")


@pytest.mark.slow
def test_fuzz_goes_on_where_it_stopped(tmp_path: Path) -> None:
    before = [{"case": n, "kind": "yaml", "trace": "", "seconds": 0.0} for n in range(7)]
    (tmp_path / "f").write_text("".join(json.dumps(record) + "\n" for record in before))
    last = campaign("fuzz_campaign.py", tmp_path / "f", "--cases", "21")
    assert "21 cases (9 yaml, 2 configuration, 2 run folder" in last
    assert "0 tracebacks or hangs" in last


@pytest.mark.slow
def test_changes_of_the_methods_are_noticed(tmp_path: Path) -> None:
    """Three mutants of methods/: enough to see that changes reach the tests."""
    options = ["--rooms", "methods", "--mutants", "3"]
    last = campaign("mutation_check.py", tmp_path / "m", *options)
    assert last.startswith("3 of ")
