"""What a release says of itself in several places is the same everywhere."""

from __future__ import annotations

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
