"""The linear probe: the last layer learns from stream and memory, the rest stays as it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from liderlab.training.loop import Loop

Lider = Callable[..., tuple[int, str, str]]


def test_the_loss_by_hand(scene: Callable[..., Any]) -> None:
    at = scene("linear-probe")
    terms = at.losses()
    (replay,) = at.drawn
    assert list(terms) == ["stream", "replay"]
    head = at.loop.network.backbone.fc
    for name, rows in (("stream", at.batch), ("replay", replay)):
        features = at.loop.network.features(rows.x)
        logits = (features @ head.weight.T + head.bias).tolist()
        expected = [
            math.log(sum(math.exp(v) for v in row)) - row[y]
            for row, y in zip(logits, rows.y.tolist(), strict=True)
        ]
        assert terms[name].tolist() == pytest.approx(expected, rel=1e-12)


def test_only_the_last_layer_moves(build: Callable[..., Loop]) -> None:
    loop = build("linear-probe")
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    for _ in loop:
        pass
    after = loop.network.state_dict()
    moved = {name for name in before if not torch.equal(after[name], before[name])}
    assert moved == {"backbone.fc.weight", "backbone.fc.bias"}  # no statistics of BatchNorm either
    assert not any(module.training for module in loop.network.backbone.modules())


def test_dropout_in_the_backbone_is_off(scene: Callable[..., Any]) -> None:
    at = scene("linear-probe")
    at.loop.network.backbone.extra = torch.nn.Dropout(0.5)
    at.loop.network.train()
    assert not at.loop.network.backbone.extra.training


@pytest.mark.parametrize("regularizer", ["lider", "casper", "bfp"])
def test_regularizers_of_features_are_refused(
    regularizer: str, lider: Lider, tmp_path: Path
) -> None:
    run = ["run", "--benchmark", "synthetic", "--method", "linear-probe", "--out", "refused"]
    code, _, err = lider(*run, "--regularizer", regularizer)
    assert code == 2
    assert f"{regularizer} acts on the backbone's features, and linear-probe keeps" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "refused").exists()


def test_nothing_is_left_to_train_if_the_head_is_frozen_too(lider: Lider) -> None:
    run = ["run", "--benchmark", "synthetic", "--method", "linear-probe", "--out", "refused"]
    code, _, err = lider(*run, "--freeze", "fc")
    assert code == 2
    assert "backbone.freeze leaves nothing to train" in err
