"""Frozen parts of a backbone: neither their weights nor their statistics move."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from liderlab.backbones.freezing import freeze
from liderlab.backbones.network import Network
from liderlab.backbones.resnet import resnet18
from liderlab.backbones.third_party import as_backbone
from liderlab.config.compatibility import why_not
from liderlab.errors import UserError
from liderlab.regularizers import REGULARIZERS
from liderlab.training.loop import Loop
from short_options import SMALL


def network() -> Network:
    return Network(resnet18(4, (3, 8, 8), width=8))


def trained(made: Network) -> set[str]:
    return {name for name, p in made.backbone.named_parameters() if p.requires_grad}


@pytest.mark.parametrize(
    ("patterns", "frozen"),
    [
        (["conv1"], {"conv1.weight"}),
        (["layer1.0"], {n for n, _ in network().backbone.named_parameters() if "layer1.0." in n}),
        (["*.bias", "fc"], {n for n in trained(network()) if n.endswith("bias") or "fc." in n}),
        ("all-but-head", trained(network()) - {"fc.weight", "fc.bias"}),
        ([], set()),
    ],
)
def test_patterns_name_parameters_or_modules(patterns: list[str] | str, frozen: set[str]) -> None:
    made = network()
    freeze(made, patterns)
    assert trained(network()) - trained(made) == frozen


def test_names_are_those_of_the_networks_authors() -> None:
    inner = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 4))
    made = Network(as_backbone(inner))
    freeze(made, ["0"])
    assert not inner[0].weight.requires_grad
    assert inner[2].weight.requires_grad


def test_frozen_batch_norm_stays_in_eval_mode() -> None:
    made = network()
    freeze(made, ["layer1"])
    made.train()
    frozen = [m for m in made.backbone.layer1.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(frozen) == 4
    assert not any(module.training for module in frozen)
    assert made.backbone.bn1.training
    copy = made.frozen_copy().train()
    assert not copy.backbone.layer1[0].bn1.training


@pytest.mark.parametrize(
    ("patterns", "sentence"),
    [
        (["layer9"], "'layer9' matches no parameter; the backbone has conv1, bn1, layer1,"),
        (["*"], "leaves nothing to train"),
    ],
)
def test_bad_patterns_are_refused(patterns: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        freeze(network(), patterns)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--freeze", "nothing"], "'nothing' matches no parameter"),
        (["--freeze", "*"], "leaves nothing to train"),
        (["--set", "backbone.freeze=3"], "expected all-but-head, or a list of patterns"),
    ],
)
def test_bad_patterns_on_the_command_line(
    options: list[str], sentence: str, lider: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, error = lider("run", "--benchmark", "synthetic", "--out", "x", *options)
    assert code == 2
    assert sentence in " ".join(error.split())
    assert not Path("x").exists()


@pytest.mark.parametrize(
    "regularizer", [r for r in REGULARIZERS if why_not("er", r, {}) is None] + [None]
)
def test_only_the_head_moves(regularizer: str | None, build: Callable[..., Loop]) -> None:
    """With every regulariser, a frozen backbone keeps its weights and statistics to the bit."""
    regularizers = {regularizer: SMALL.get(regularizer, {})} if regularizer else {}
    loop = build("er", regularizers, prepare=lambda n: freeze(n, "all-but-head"), epochs=1)
    head = [name for name, p in loop.network.named_parameters() if p.requires_grad]
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    for _ in loop:
        pass
    after = loop.network.state_dict()
    moved = [name for name, value in after.items() if not torch.equal(value, before[name])]
    assert sorted(moved) == sorted(head)
    assert len(head) == 2
