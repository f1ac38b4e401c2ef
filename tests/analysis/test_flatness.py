"""Flatness: weight noise hurts, and the Hessian is the dense one."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from liderlab.analysis import hessian_spectrum, weight_perturbation
from liderlab.functional.hessian_products import flatten, unflatten


@pytest.mark.parametrize("scale", ["absolute", "filter"])
def test_noise_raises_the_loss_and_lowers_the_accuracy(clouds, train, scale):
    x, y = clouds(100)
    model = train((x, y))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    result = weight_perturbation(model, x, y, sigmas=(0, 0.3, 1.0), draws=8, scale=scale)
    loss, accuracy = result.loss.mean(1), result.accuracy.mean(1)
    assert loss[0] < loss[1] < loss[2]
    assert accuracy[0] > accuracy[1] > accuracy[2]
    assert loss[0] == pytest.approx(F.cross_entropy(model(x), y).item(), rel=1e-5)
    assert np.ptp(result.loss[0]) == 0  # no noise, nothing drawn
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_noise_has_the_given_size():
    layer = nn.Linear(400, 3, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 2.0, 0.0])[:, None].expand(3, 400))
    seen = []
    layer.register_forward_pre_hook(lambda module, args: seen.append(module.weight.detach()))
    x, y = torch.zeros(2, 400), torch.zeros(2, dtype=torch.long)
    for scale, expected in (("absolute", [0.5, 0.5, 0.5]), ("filter", [0.5, 1.0, 0.0])):
        seen.clear()
        weight_perturbation(layer, x, y, sigmas=(0.5,), draws=5, scale=scale)
        spread = (torch.stack(seen) - layer.weight.detach()).std((0, 2))
        assert spread.tolist() == pytest.approx(expected, rel=0.06)


def test_same_generator_same_draws(clouds, train):
    x, y = clouds(20)
    model = train((x, y), steps=5)
    a, b, c = (
        weight_perturbation(model, x, y, draws=2, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert (a.loss == b.loss).all()
    assert not (a.loss == c.loss).all()


@pytest.mark.parametrize("batch", [5, 256])
def test_hessian_spectrum_is_the_dense_one_in_any_batches(batch):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4)).double()
    x, y = torch.randn(12, 3, dtype=torch.float64), torch.arange(12) % 3
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(vector):
        logits = functional_call(model, unflatten(vector, parameters), (x,))
        return F.cross_entropy(logits[:, :3], y)

    dense = torch.autograd.functional.hessian(loss, flatten(parameters))
    result = hessian_spectrum(
        model, x, y, k=3, trace_samples=80, classes=range(3), batch=batch, tol=1e-10
    )
    truth = torch.linalg.eigvalsh(dense).flip(0)
    assert result.eigenvalues.tolist() == pytest.approx(truth[:3].tolist(), rel=1e-6)
    assert abs(result.trace - float(dense.trace())) < 4 * result.trace_error
    assert result.trace_error < 0.2 * abs(result.trace)
    assert result.parameters == len(dense)


def test_hessian_of_a_network_with_batch_norm_and_attention():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 2, stride=2),
        nn.BatchNorm2d(8),
        nn.Flatten(2),
        nn.TransformerEncoderLayer(4, 2, 8, 0.1, batch_first=True),
        nn.Flatten(),
        nn.Linear(32, 3),
    )
    x, y = torch.randn(6, 1, 4, 4), torch.arange(6) % 3
    before = model[1].running_mean.clone()
    result = hessian_spectrum(model, x, y, k=1, trace_samples=4)
    assert np.isfinite(result.eigenvalues).all()
    assert result.eigenvalues[0] > 0
    assert model.training
    assert torch.equal(model[1].running_mean, before)


def test_refuses(clouds, train):
    x, y = clouds(8)
    model = train((x, y), steps=1)
    with pytest.raises(ValueError, match="unknown scale"):
        weight_perturbation(model, x, y, scale="layer")
    with pytest.raises(ValueError, match="draws ≥ 1"):
        weight_perturbation(model, x, y, draws=0)
    with pytest.raises(ValueError, match="trainable parameters"):
        hessian_spectrum(nn.Flatten(), x, y)
