"""Arguments and networks that LiDER refuses, and its messages."""

import re

import pytest
from torch import Tensor, nn

from liderlab import LiDER
from liderlab.backbones.convnet import ConvNet
from small_network import STAGES, images, network


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"estimator": "spacial"}, "did you mean 'spatial'"),
        ({"reading": "sigma"}, "Allowed: singular, eigenvalue"),
        ({"weights": "released"}, "Allowed: paper, swapped"),
        ({"on": "memory"}, "Allowed: replay, stream, both"),
        ({"order": "0"}, "Allowed: c-0, 0-c"),
        ({"calibrate": "end"}, "Allowed: start, first-task"),
        ({"calibration_data": "memory"}, "Allowed: fit, task"),
        ({"calibration_rows": 0}, "calibration_rows ≥ 1"),
        ({"rows_at_most": 0}, "rows_at_most ≥ 1"),
        ({"rows_at_most": 1, "estimator": "batch"}, "it needs rows_at_most ≥ 2"),
        ({"control": True}, "control makes the passes of draw='fresh'"),
        ({"control": True, "draw": "fresh", "alpha": 0.0, "beta": 0.0}, "a weight above 0"),
        ({"rows": "none"}, "Allowed: all, past"),
        ({"draw": "new"}, "Allowed: reuse, fresh"),
        ({"alpha": -0.1}, "alpha ≥ 0"),
        ({"beta": float("nan")}, "beta ≥ 0"),
        ({"iterations": 0}, "iterations ≥ 1"),
        ({"tol": -1.0}, "tol ≥ 0"),
        ({"alpha": float("inf")}, "alpha ≥ 0 and finite"),
        ({"iterations": 2.5}, "a whole number"),
        ({"stages": "1"}, "Expected a list of stages, .'1'., but got '1'"),
        ({"stages": []}, "Expected different stages"),
        ({"stages": ["1", "1"]}, "Expected different stages"),
        ({"stages": ["input", "1"]}, "beside 'input'"),
        ({"stages": ["1"], "from_input": False}, "two maps or more"),
        ({"stages": ["1", "9"]}, "but got '9'; it has 0, 1, 2"),
    ],
)
def test_bad_arguments_are_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        LiDER(network(), **arguments)


def calibrate(lider: LiDER, model: nn.Module, x: Tensor) -> None:
    lider.calibrate([x])


def watch(lider: LiDER, model: nn.Module, x: Tensor) -> None:
    with lider.watch():
        model(x)


def attach(lider: LiDER, model: nn.Module, x: Tensor) -> None:
    lider.attach(model, x)


@pytest.mark.parametrize("meet", [calibrate, watch, attach])
@pytest.mark.parametrize(
    ("stages", "size", "says"),
    [
        (["3", "5"], 2, "'3' and '5' have one position each.*estimator=\"batch\""),
        (["1", "6"], 8, "'6' gives .n, 12.: choose other stages, or estimator=\"batch\""),
        (["3", "1"], 8, "running order"),
    ],
)
def test_set_ups_that_are_degenerate_for_every_batch_are_refused(stages, size, says, meet):
    model = network()
    lider = LiDER(model, stages)
    for _ in range(2):  # and refused again
        with pytest.raises(ValueError, match=says):
            meet(lider, model, images(size=size))
    assert lider.terms() == {}


def test_the_batch_form_takes_maps_that_the_spatial_form_refuses():
    model = network()
    lider = LiDER(model, ["1", "6"], estimator="batch")
    watch(lider, model, images())
    assert lider.penalty() > 0
    with pytest.raises(ValueError, match="running order"):
        watch(LiDER(model, ["3", "1"], estimator="batch"), model, images())


@pytest.mark.parametrize("meet", [calibrate, watch, attach])
@pytest.mark.parametrize(
    ("stages", "channels", "says"),
    [
        (["1", "3", "5"], 3, "no gradient reaches 5 through its own λ"),
        (["1", "3"], 1, "λ between input and 1 has no gradient.*or from_input=False"),
    ],
)
def test_lambdas_without_gradient_are_warned_about_once(stages, channels, says, meet, caplog):
    model = network(channels=channels)
    lider = LiDER(model, stages)
    meet(lider, model, images(channels=channels))
    watch(lider, model, images(channels=channels))
    assert len(caplog.records) == 1
    assert re.search(says, caplog.text)


def test_networks_without_maps_are_refused():
    flat = nn.Sequential(nn.Flatten(), nn.Linear(192, 5))
    with pytest.raises(ValueError, match="Found no feature maps"):
        LiDER(flat).calibrate([images()])
    with pytest.raises(ValueError, match="fewer than two maps"):
        LiDER().attach(ConvNet(5, (3, 1, 1), width=4), images(size=1))


def test_calibrating_without_samples_is_refused():
    model = network()
    with pytest.raises(ValueError, match="at least 1 samples"):
        LiDER(model, STAGES).calibrate([])
    with pytest.raises(ValueError, match="at least 2 samples"):
        LiDER(model, STAGES, estimator="batch").calibrate([images(1)])
    with pytest.raises(RuntimeError, match=r"LiDER\(model\), or attach\(model\)"):
        LiDER().calibrate([images()])


def test_an_empty_watch_is_refused():
    lider = LiDER(network(), STAGES)
    with pytest.raises(RuntimeError, match="No pass was recorded"), lider.watch():
        pass


def test_watch_does_not_nest():
    model = network()
    lider = LiDER(model, STAGES)
    with pytest.raises(RuntimeError, match="does not nest"), lider.watch():
        lider.calibrate([images()])
    watch(lider, model, images())
