"""Clipping, against torch's functions and by hand in float64."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.config.merging import make_config
from liderlab.errors import UserError
from liderlab.runs.build import completed
from liderlab.training.learner import Learner, NotFinite
from liderlab.training.optimizers import make_clip
from liderlab.types import Recipe

RECIPE = Recipe(lr=0.1, momentum=0.5)


class Weights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
        self.unused = nn.Parameter(torch.ones(3, dtype=torch.float64))


def loss(network: Weights, method: Weights) -> Tensor:
    return network.w.pow(3).sum() + 2 * method.w.square().sum()


@pytest.mark.parametrize(("norm", "value"), [(1.0, None), (1e6, None), (None, 0.5), (None, 1e6)])
def test_a_clipped_step_is_torchs(norm: float | None, value: float | None) -> None:
    ours, theirs = (Weights(), Weights()), (Weights(), Weights())
    learner = Learner(*ours, [])
    learner.start(replace(RECIPE, clip=make_clip(norm, value)))
    parameters = [p for module in theirs for p in module.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.5)
    for _ in range(4):
        learner.step({"loss": loss(*ours)})
        optimizer.zero_grad()
        loss(*theirs).backward()
        if norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, norm)
        else:
            assert value is not None
            torch.nn.utils.clip_grad_value_(parameters, value)
        optimizer.step()
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(mine.w, other.w)
        assert torch.equal(mine.unused, torch.ones(3))


def test_the_norm_is_that_of_the_whole_gradient() -> None:
    network, method = Weights(), Weights()
    learner = Learner(network, method, [])
    learner.start(Recipe(lr=0.1, clip=make_clip(1.0, None)))
    learner.step({"loss": loss(network, method)})
    gradient = [3.0, 12.0, 4.0, -8.0]  # 3 w², 4 w
    size = math.sqrt(sum(g * g for g in gradient)) + 1e-6  # torch adds this
    expected = [w - 0.1 * g / size for w, g in zip([1, -2, 1, -2], gradient, strict=True)]
    assert torch.cat([network.w, method.w]).tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("clip", [make_clip(1.0, None), make_clip(None, 1.0)])
def test_clipping_does_not_hide_an_infinite_gradient(clip: Any) -> None:
    network = Weights()
    learner = Learner(network, nn.Module(), [])
    learner.start(replace(RECIPE, clip=clip))
    with pytest.raises(NotFinite):
        learner.step({"loss": network.w.sum() * math.inf})
    assert network.w.tolist() == [1.0, -2.0]
    skips = Learner(network, nn.Module(), [], "skip")
    skips.start(replace(RECIPE, clip=clip))
    skips.step({"loss": network.w.sum() * math.nan})
    assert skips.left_out
    assert network.w.tolist() == [1.0, -2.0]


def test_float16_gradients_are_clipped_after_they_are_unscaled() -> None:
    network = Weights().float()
    learner = Learner(network, nn.Module(), [], scale=True)
    learner.start(Recipe(lr=0.1, clip=make_clip(None, 0.5)))
    learner.step({"loss": network.w.sum() * 0.25})
    assert network.w.tolist() == pytest.approx([1 - 0.025, -2 - 0.025])


@pytest.mark.parametrize(
    ("clip", "says"),
    [
        ({}, "training.clip: expected either norm or value"),
        ({"norm": 1, "value": 1}, "training.clip: expected either norm or value"),
        ({"norm": 0}, "training.clip.norm: input should be greater than 0"),
        ({"norm": math.inf}, "training.clip.norm: expected at most 1e38"),
        ({"norms": 1}, "unknown field of training.clip 'norms': did you mean 'norm'"),
        (1.0, "training.clip: expected fields and their values"),
    ],
)
def test_wrong_clips_are_refused_in_one_sentence(clip: Any, says: str) -> None:
    with pytest.raises(UserError, match=says) as error:
        completed(make_config({"benchmark": "synthetic", "training": {"clip": clip}}))
    assert "\n" not in str(error.value)
