"""Stages that LiDER finds itself."""

import logging

import pytest
import torch
from torch import nn

from liderlab import LiDER
from liderlab.backbones.convnet import ConvNet
from liderlab.backbones.mlp import MLP
from liderlab.backbones.network import Network
from liderlab.backbones.resnet import resnet18
from liderlab.functional.lipschitz import spatial_lipschitz
from liderlab.regularizers.spatial_maps import channels, positions, usable
from small_network import images, maps, network


def test_default_stages_of_our_backbones():
    model = resnet18(10, (3, 16, 16), width=8)
    assert LiDER(model).chain == ["input", "stem", "layer1", "layer2", "layer3", "layer4"]
    assert LiDER(Network(model)).chain == LiDER(model).chain
    assert len(LiDER(model).targets) == 5


def test_default_stages_need_no_warning(caplog):
    LiDER(ConvNet(4, (3, 8, 8), width=4))
    LiDER(nn.Sequential(nn.Conv2d(3, 4, 3)))  # not known yet
    assert caplog.text == ""


def test_stages_are_found_at_calibration_and_logged(caplog):
    model = network().eval()
    lider = LiDER(model, alpha=0.0, beta=1.0)
    for needs_stages in (lider.param_groups, lider.watch().__enter__):
        with pytest.raises(RuntimeError, match=r"calibrate\(\)"):
            needs_stages()
    with caplog.at_level(logging.INFO, logger="liderlab"):
        lider.calibrate([images()])
    assert lider.chain == ["input", "2", "4"]
    assert "LiDER watches the stages 2, 4; pass stages=" in caplog.text
    assert lider.param_groups()[0]["params"][0] is lider.targets
    with lider.watch():
        model(images())
    x, first, second = maps(model, images())  # a foreign network's outputs as they are: after ReLU
    pairs = ((x, first.relu()), (first.relu(), second.relu()))
    expected = torch.stack([spatial_lipschitz(a, b) for a, b in pairs]).mean()
    torch.testing.assert_close(lider.penalty(), expected)


def test_with_an_example_degenerate_stages_are_left_out_and_logged(caplog):
    """ResNet18 on 8x8 digits: one channel at the start, one position at the end."""
    model, lider = resnet18(10, (1, 8, 8), width=4), LiDER()
    with caplog.at_level(logging.INFO, logger="liderlab"):
        lider.attach(model, images(2, channels=1))
    assert lider.chain == ["stem", "layer1", "layer2", "layer3"]
    assert "LiDER watches stem → layer1 → layer2 → layer3" in caplog.text
    assert len(lider.targets) == 3
    assert sum(bool(module._forward_hooks) for module in model.modules()) == 4


def test_maps_without_positions_suit_the_batch_form():
    model = MLP(10, (1, 8, 8), width=6)
    lider = LiDER(model, estimator="batch")
    lider.calibrate([images(channels=1)])
    with lider.watch():
        model(images(channels=1))
    lider.penalty().backward()
    assert model.hidden1.weight.grad.abs().sum() > 0


def test_two_maps_are_enough():
    shapes = {"a": torch.Size([4, 5, 5]), "b": torch.Size([8, 1, 2]), "c": torch.Size([8, 1, 1])}
    assert usable(["a", "b", "c"], shapes) == ["a", "b"]
    with pytest.raises(ValueError, match="fewer than two maps"):
        usable(["a", "c"], shapes)


def test_positions_and_channels_of_tokens_and_maps():
    assert (positions(torch.Size([7, 3])), channels(torch.Size([7, 3]))) == (7, 3)
    assert (positions(torch.Size([3, 4, 5])), channels(torch.Size([3, 4, 5]))) == (20, 3)
