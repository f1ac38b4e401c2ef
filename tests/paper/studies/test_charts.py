"""Figures draw the paper's numbers over the paper's data alone."""

from typing import Any

import pytest

from liderlab.paper.studies import find_study
from liderlab.paper.studies.study_definition import Findings

ROW: dict[str, Any] = {
    "setting": "cifar100",
    "tasks": 10,
    "buffer": 500,
    "paper_buffer": 500,
    "method": "der++",
    "column": "tuned",
    "faa": 30.0,
    "faa_std": None,
    "paper_faa": 37.13,
}


def labels(study: str, benchmark: str) -> set[str]:
    """The legend of a study's figure, of rows that stand beside a number of the paper."""
    additions = {"": "DER++", "lider": "DER++ + LiDER"}
    rows = [
        {**ROW, "benchmark": benchmark, "addition": addition, "label": label, "poison": poison}
        for addition, label in additions.items()
        for poison in (0.0, 0.25)
    ]
    figure = find_study(study).show(Findings(rows, []))
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


@pytest.mark.parametrize("study", ["main", "fixed-target", "poisoning"])
def test_a_stand_in_has_none_of_the_papers_numbers(study: str) -> None:
    there, here = labels(study, "split-cifar100"), labels(study, "split-digits")
    printed = {label for label in there if "paper" in label}
    assert printed
    assert here == there - printed
