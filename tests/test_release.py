"""What a release says of itself in several places is the same everywhere."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

import liderlab

ROOT = Path(__file__).parents[1]


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == liderlab.__version__ == citation["version"]
    assert project["license"] == citation["license"] == "MIT"


def test_the_citation_is_the_papers() -> None:
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    assert paper["title"].endswith("Lipschitz-Driven Rehearsal in Continual Learning")
    families = [author["family-names"] for author in paper["authors"]]
    assert families == ["Bonicelli", "Boschini", "Porrello", "Spampinato", "Calderara"]


def test_the_wheel_works_away_from_the_repository(tmp_path: Path) -> None:
    """Presets, tables and templates are inside."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    built = subprocess.run(
        [*pip, "--wheel-dir", str(tmp_path), "."], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    tried = subprocess.run(
        [sys.executable, str(ROOT / "tests/try_wheel.py"), str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
