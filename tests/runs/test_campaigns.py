"""The campaigns of benchmarks/ at a small count; docs/resume.md has the commands for large ones."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def campaign(script: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_kills() -> None:
    last = campaign("kill_campaign.py", *["--kills", "4", "--methods", "er", "--ranks", "1"])
    assert last.startswith("4 kills (")
    assert last.endswith("0 runs differ")


def test_fuzz() -> None:
    assert "70 cases (10 configuration, 10 yaml" in campaign("fuzz_campaign.py", "--cases", "70")
