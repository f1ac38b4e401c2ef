"""sSGD: its recipe, and a dropout that copies and other hooks do not notice."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from liderlab.backbones.convnet import ConvNet
from liderlab.backbones.mlp import MLP
from liderlab.backbones.network import Network
from liderlab.backbones.resnet import resnet18
from liderlab.regularizers.lider import LiDER
from liderlab.regularizers.ssgd import SSGD
from liderlab.streams.splitting import SplitStream
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop
from liderlab.types import MultiStep, Recipe

Build = Callable[..., Loop]
SHAPE = (3, 8, 8)


@pytest.fixture
def network() -> Network:
    torch.manual_seed(0)
    return Network(MLP(6, SHAPE, width=400))


@pytest.fixture
def x() -> Tensor:
    return torch.randn(16, *SHAPE, generator=torch.Generator().manual_seed(1))


def test_recipe_of_each_task(stream: SplitStream) -> None:
    recipe = Recipe(0.2, 0.9, 1e-4, 32, 16, MultiStep((3,), 0.5))
    ssgd = SSGD(decay=0.5, batch_size=10)
    adapted = [ssgd.adapt(recipe, task) for task in stream.tasks]
    assert adapted == [
        Recipe(lr, 0.9, 1e-4, 10, 16, MultiStep((3,), 0.5)) for lr in (0.2, 0.1, 0.05)
    ]
    assert SSGD(decay=0.5).adapt(recipe, stream.tasks[1]).batch_size == 32


def test_the_loop_uses_its_recipe(build: Build) -> None:
    loop = build("finetune", {"ssgd": {"decay": 0.5, "batch_size": 6}})
    seen = {}
    for event in loop:
        if isinstance(event, StepDone):
            seen[event.task.index] = (event.fit.recipe.lr, event.batches)
    assert seen == {0: (0.1, 4), 1: (0.05, 4), 2: (0.025, 4)}  # 24 rows a task


def test_switched_off_it_changes_nothing(
    build: Build, differences: Callable[..., list[str]], stream: SplitStream
) -> None:
    options = {"decay": 1.0, "dropout": 0.0, "batch_size": None}
    with_it, without = build("er-ace", {"ssgd": options}), build("er-ace")
    assert not any(
        module._forward_hooks or module._forward_pre_hooks for module in with_it.network.modules()
    )
    list(with_it)
    list(without)
    states = [
        {k: v for k, v in s.state_dict().items() if k != "regularizers"} for s in (with_it, without)
    ]
    assert differences(*states) == []
    recipe = Recipe(0.3, schedule=MultiStep((1,)))
    assert SSGD(**options).adapt(recipe, stream.tasks[2]) == recipe


# Dropout


def test_drops_from_the_last_layers_input(network: Network, x: Tensor) -> None:
    SSGD(dropout=0.25).attach(network)
    seen: list[Tensor] = []
    network.backbone.fc.register_forward_hook(lambda module, args, output: seen.append(args[0]))
    network(x)
    features = network.features(x)
    alive, kept = features > 0, seen[0] > 0
    torch.testing.assert_close(seen[0][kept], features[kept] / 0.75)
    share = kept[alive].float().mean().item()
    assert share == pytest.approx(0.75, abs=0.03)
    assert not kept[~alive].any()


@pytest.mark.parametrize("where", ["features", "stages"])
def test_drops_nothing_in_eval_mode(network: Network, x: Tensor, where: Any) -> None:
    plain = network.eval()(x)
    SSGD(dropout=0.5, where=where).attach(network, x)
    assert torch.equal(network.eval()(x), plain)
    assert not torch.equal(network.train()(x), plain)


@pytest.mark.parametrize("where", ["features", "stages"])
def test_copies_do_not_drop(network: Network, x: Tensor, where: Any) -> None:
    plain = network(x)
    SSGD(dropout=0.5, where=where).attach(network, x)
    assert torch.equal(network.frozen_copy()(x), plain)
    state = torch.get_rng_state()
    assert torch.equal(deepcopy(network).train()(x), plain)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(network(x), plain)  # the original still does


def test_dropping_stages_is_dropout_behind_every_relu(network: Network, x: Tensor) -> None:
    SSGD(dropout=0.3, where="stages").attach(network, x)
    torch.manual_seed(5)
    found = network(x)
    torch.manual_seed(5)
    body = network.backbone
    hidden = F.dropout(F.linear(x.flatten(1), body.hidden1.weight, body.hidden1.bias).relu(), 0.3)
    hidden = F.dropout(F.linear(hidden, body.hidden2.weight, body.hidden2.bias).relu(), 0.3)
    expected = F.linear(hidden, body.fc.weight, body.fc.bias)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("backbone", [ConvNet, resnet18])
@pytest.mark.parametrize("where", ["features", "stages"])
def test_dropout_acts_in_every_backbone(backbone: Any, where: Any, x: Tensor) -> None:
    body, ssgd = backbone(6, SHAPE, width=4), SSGD(dropout=0.5, where=where)
    ssgd.attach(Network(body), x)
    ssgd.attach(Network(body), x)  # anew, not twice
    hooks = [h for m in body.modules() for h in (*m._forward_hooks, *m._forward_pre_hooks)]
    assert len(hooks) == (1 if where == "features" else len(body.taps))


def test_a_fixed_readout_is_not_the_last_layer(x: Tensor) -> None:
    readout = nn.Linear(6, 6).requires_grad_(False)
    network = Network(MLP(6, SHAPE), readout)
    SSGD(dropout=0.5).attach(network)
    assert network.backbone.fc._forward_pre_hooks
    assert not readout._forward_pre_hooks


def test_networks_without_taps(x: Tensor) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3, stride=2))
    SSGD(dropout=0.5, where="stages").attach(network, x)
    assert [len(module._forward_hooks) for module in network] == [0, 1, 1]
    with pytest.raises(ValueError, match='where="stages"'):
        SSGD(dropout=0.5).attach(network, x)
    with pytest.raises(ValueError, match='where="features"'):
        SSGD(dropout=0.5, where="stages").attach(network)


def test_lider_sees_the_same_in_either_order_of_attaching(x: Tensor) -> None:
    def constants(lider_first: bool) -> Tensor:
        torch.manual_seed(0)
        network = Network(ConvNet(6, SHAPE, width=4))
        lider, ssgd = LiDER(), SSGD(dropout=0.5, where="stages")
        for regularizer in (lider, ssgd) if lider_first else (ssgd, lider):
            regularizer.attach(network, x)
        torch.manual_seed(1)
        with lider.watch():
            network(x)
        return lider.constants

    assert torch.equal(constants(True), constants(False))


@pytest.mark.parametrize("where", ["features", "stages"])
def test_runs_repeat_and_resume_bit_for_bit(
    build: Build, differences: Callable[..., list[str]], where: str
) -> None:
    options = {"ssgd": {"dropout": 0.3, "where": where, "batch_size": 6}}
    whole, first, second = (build("er-ace", options) for _ in range(3))
    list(whole)
    for event in first:
        if isinstance(event, StepDone) and (event.task.index, event.batch) == (1, 1):
            break
    torch.manual_seed(123)  # the state of torch's own generator must not matter
    second.load_state_dict(first.state_dict())
    list(second)
    assert differences(second.state_dict(), whole.state_dict()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": 0.0}, "decay > 0"),
        ({"decay": 1.1}, "decay > 0 and ≤ 1"),
        ({"dropout": 1.0}, "dropout ≥ 0 and < 1"),
        ({"where": "everywhere"}, "Allowed: features, stages"),
        ({"batch_size": 0}, "batch_size ≥ 2"),
        ({"batch_size": 10**30}, "batch_size ≥ 2 and ≤ 1000000000"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SSGD(**options)
