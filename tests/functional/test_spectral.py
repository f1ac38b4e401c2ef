"""Spectral norms against operators written out as matrices, in float64."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import jacrev

from liderlab.functional.spectral import (
    batch_norm_scale,
    operator_norm,
    power_iteration,
    spectral_norm,
    weight_map,
)


def dense(apply, shape: tuple[int, ...]) -> Tensor:
    """The matrix of a linear function of tensors of this shape."""
    size = torch.Size(shape).numel()
    zeros = torch.zeros(shape, dtype=torch.float64)
    return jacrev(apply)(zeros).reshape(-1, size)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"padding": 1}, (3, 6, 6)),
        ({"padding": 1, "stride": 2}, (3, 7, 5)),
        ({"padding": 2, "dilation": 2}, (3, 6, 6)),
        ({"padding": 1, "padding_mode": "circular"}, (3, 5, 5)),
        ({"padding": 1, "padding_mode": "reflect"}, (3, 5, 5)),
        ({"groups": 3}, (3, 6, 6)),
    ],
)
def test_convolution_is_the_norm_of_its_dense_matrix(options, shape):
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 6, 3, **options).double()
    truth = torch.linalg.svdvals(dense(lambda x: layer(x), (1, *shape)))[0].detach()
    assert spectral_norm(layer, shape, tol=1e-10) == pytest.approx(float(truth), rel=1e-7)


def test_transposed_and_one_dimensional_convolutions():
    torch.manual_seed(0)
    for layer, shape in (
        (nn.ConvTranspose2d(2, 3, 3, stride=2).double(), (2, 4, 4)),
        (nn.Conv1d(2, 3, 5, padding=2).double(), (2, 9)),
    ):
        matrix = dense(lambda x, layer=layer: layer(x), (1, *shape)).detach()
        truth = torch.linalg.svdvals(matrix)[0]
        assert spectral_norm(layer, shape, tol=1e-10) == pytest.approx(float(truth), rel=1e-7)


def test_linear_and_batch_norm_in_closed_form():
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 0, 0], [0, 4, 0]]))
    assert spectral_norm(layer, (3,)) == pytest.approx(4)
    norm = nn.BatchNorm2d(2).eval()
    norm.running_var.copy_(torch.tensor([4.0, 0.25]))
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([-6.0, 1.0]))
    assert spectral_norm(norm, (2, 4, 4)) == pytest.approx(3, rel=1e-4)
    assert batch_norm_scale(norm).tolist() == pytest.approx([-3, 2], rel=1e-4)


def test_single_precision_is_good_to_its_tolerance():
    torch.manual_seed(0)
    layer = nn.Conv2d(4, 8, 3, padding=1)
    exact = spectral_norm(layer.double(), (4, 8, 8), tol=1e-12)
    assert spectral_norm(layer.float(), (4, 8, 8)) == pytest.approx(exact, rel=1e-4)


def test_zero_operator_has_norm_zero():
    assert operator_norm(lambda x: 0 * x, (30,)) == 0


def test_wrong_layers_are_refused():
    with pytest.raises(ValueError, match="but got ReLU"):
        spectral_norm(nn.ReLU(), (3,))
    with pytest.raises(ValueError, match="running statistics"):
        spectral_norm(nn.BatchNorm2d(2, track_running_stats=False), (2, 4, 4))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(5, 7), (1, 5)),
        (nn.Conv2d(3, 4, 3, padding=1, stride=2), (1, 3, 7, 5)),
        (nn.Conv2d(3, 6, 3, padding=1, padding_mode="circular", groups=3), (1, 3, 5, 5)),
        (nn.Conv1d(2, 3, 5, padding=2), (1, 2, 9)),
    ],
)
def test_power_iteration_gives_the_norm_and_its_gradient(layer, shape):
    """Against the decomposition of the dense matrix: d σ₁ / d W too."""
    torch.manual_seed(0)
    layer = layer.double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    apply = weight_map(layer)
    vector = power_iteration(apply, torch.randn(shape, dtype=torch.float64), 3000)
    estimate = apply(vector).norm()
    truth = torch.linalg.svdvals(dense(apply, shape))[0]
    torch.testing.assert_close(estimate, truth)
    gradients = [torch.autograd.grad(value, layer.weight)[0] for value in (estimate, truth)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_power_iteration_keeps_its_vector_where_the_map_is_zero():
    vector = torch.ones(3)
    assert torch.equal(power_iteration(lambda x: 0 * x, vector, 2), vector)


def test_layers_that_are_not_linear_have_no_weight_map():
    assert weight_map(nn.BatchNorm2d(3)) is None
    assert weight_map(nn.ConvTranspose2d(2, 2, 3)) is None


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_power_iteration_works_at_every_scale(scale):
    matrix = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    start = torch.ones(5, dtype=torch.float64)
    found = power_iteration(lambda x: scale * matrix @ x, start, 500)
    truth = torch.linalg.svd(matrix).Vh[0]
    assert float((found @ truth).abs()) == pytest.approx(1.0, abs=1e-9)


def test_the_scale_of_batch_norm_counts_its_epsilon():
    layer = nn.BatchNorm2d(3, eps=0.5).double()
    layer.running_var.copy_(torch.tensor([0.5, 1.0, 3.5]))
    layer.weight.data.copy_(torch.tensor([1.0, -2.0, 3.0]))
    expected = torch.tensor([1.0, -2.0 / 1.5**0.5, 1.5], dtype=torch.float64)
    torch.testing.assert_close(batch_norm_scale(layer), expected)
