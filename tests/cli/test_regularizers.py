"""Regularisers from the command line: two at once, and those that cannot work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SMALL = ("--benchmark", "synthetic", "--epochs", "1", "--set", "backbone.width=4")


def test_two_regularisers_at_once(lider: Any, tmp_path: Path) -> None:
    both = ("--regularizer", "lider", "--regularizer", "star")
    code, _, said = lider("run", *SMALL, "--method", "er", *both, "--buffer", "20", "--out", "x")
    assert code == 0, said
    result = json.loads((tmp_path / "x/result.json").read_text())
    assert list(result["config"]["regularizers"]) == ["lider", "star"]
    lines = (tmp_path / "x/metrics.jsonl").read_text().splitlines()
    terms = {name for line in lines for name in json.loads(line).get("terms", {})}
    assert {"lider/c_lip", "lider/0_lip", "star"} <= terms


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("finetune", "star"), "star needs replayed samples and finetune has no memory"),
        (("finetune", "mrfa"), "mrfa needs replayed samples and finetune has no memory"),
        (("joint", "casper"), "casper needs replayed samples and joint has no memory"),
        (("gdumb", "bfp"), "bfp works from task to task, and gdumb does not train task by task"),
        (
            ("er", "casper", "--set", "training.replay_size=8"),
            "casper joins every replayed row to its 10 nearest and needs more rows than that",
        ),
        (("er", "casper", "--buffer", "10"), "needs more rows than that, not 10"),
        (
            ("er", "mrfa", "--set", "regularizers.mrfa.stages=[layer9]"),
            "Expected stages to name modules of the network, but got 'layer9'",
        ),
        (("er", "sam", "--regularizer", "c-flat"), "both perturb the weights within a step"),
        (("er", "star", "--set", "regularizers.star.gamma=2"), "Expected gamma ≥ 0 and ≤ 1"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    arguments: tuple[str, ...], message: str, lider: Any, tmp_path: Path
) -> None:
    method, name, *more = arguments
    given = ("--method", method, "--regularizer", name, *more, "--out", "x")
    code, _, said = lider("run", *SMALL, *given)
    assert code == 2
    assert message in " ".join(said.split())
    assert "Traceback" not in said
    assert not (tmp_path / "x").exists()
