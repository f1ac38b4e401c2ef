"""Attacks hurt, stay within their reach, and are what they are in closed form."""

import pytest
import torch

from liderlab.analysis import fgsm, pgd, robustness
from liderlab.analysis.attacks import loss_gradient
from liderlab.analysis.pixels import Pixels, input_limits


def test_attacks_lower_accuracy_and_pgd_as_much_as_fgsm(clouds, train):
    x, y = clouds(200)
    model = train((x, y))
    result = robustness(model, x, y, epsilons=(0, 0.05, 0.1, 0.2))
    for values in result.accuracy.values():
        assert values[0] > 95
        assert values[1] < values[0]
        assert (values[1:] <= values[:-1] + 1).all()
        assert values[-1] < 50
    assert (result.accuracy["pgd"] <= result.accuracy["fgsm"] + 5).all()  # nearly linear: alike


def test_sizes_are_in_pixels_for_any_normalisation(clouds, train):
    """The same network behind a normalisation meets the same attacks."""
    x, y = clouds(100)
    model = train((x, y))
    scale = Pixels(mean=[0.4], std=[0.2])

    def behind(z):
        return model(z * 0.2 + 0.4)

    plain = robustness(model, x, y, epsilons=(0, 0.03, 0.1))
    normal = robustness(behind, (x - 0.4) / 0.2, y, epsilons=(0, 0.03, 0.1), normalisation=scale)
    for name, values in plain.accuracy.items():
        assert values == pytest.approx(normal.accuracy[name], abs=1.01)  # a sample on the edge


def test_attacked_inputs_stay_within_reach_and_between_black_and_white(clouds, train):
    x, y = clouds(50, noise=0.5)
    model = train((x, y), steps=20)
    for attack in (fgsm, pgd):
        moved = attack(model, x, y, 0.1)
        assert (moved - x).abs().max() <= 0.1 + 1e-6
        assert moved.min() >= 0
        assert moved.max() <= 1
        assert (moved - x).abs().mean() > 0.05


def test_fgsm_of_a_linear_model_in_closed_form():
    x, y = torch.full((1, 2), 0.5), torch.tensor([0])
    assert fgsm(lambda x: x, x, y, 0.1).tolist()[0] == pytest.approx([0.4, 0.6])


def test_the_parameters_keep_their_gradients(clouds, train):
    x, y = clouds(10)
    model = train((x, y), steps=2)
    model.zero_grad()
    assert loss_gradient(model, x, y).shape == x.shape
    assert all(p.grad is None for p in model.parameters())


def test_only_the_given_classes_count():
    x, y = torch.tensor([[0.2, 0.1, 5.0]]), torch.tensor([0])
    wide, narrow = (
        robustness(lambda x: x, x, y, epsilons=(0,), classes=classes, attacks=["fgsm"])
        for classes in (None, range(2))
    )
    assert wide.accuracy["fgsm"].tolist() == [0]
    assert narrow.accuracy["fgsm"].tolist() == [100]


def test_refuses():
    x, y = torch.rand(2, 3, 2, 2), torch.zeros(2, dtype=torch.long)
    with pytest.raises(ValueError, match="unknown attack 'fgms': did you mean 'fgsm'"):
        robustness(lambda x: x, x, y, attacks=["fgms"])
    with pytest.raises(ValueError, match="1 or 3 channels, but got 2"):
        input_limits(Pixels(mean=[0.5] * 2), x)
    with pytest.raises(ValueError, match="one label for each"):
        robustness(lambda x: x, x, y[:1])
