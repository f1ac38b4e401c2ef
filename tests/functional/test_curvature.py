"""Curvature in float64 against per-row loops and the dense Fisher matrix."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from liderlab.errors import UserError
from liderlab.functional import curvature
from liderlab.functional.curvature import (
    _squared_products,
    diagonal_fisher,
    kronecker_factors,
    kronecker_layers,
    kronecker_quadratic,
    largest_eigenvalue,
    layer_factors,
    sample_labels,
    weight_matrix,
)

CLASSES = 4


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def randomise(network: nn.Module, generator: torch.Generator) -> nn.Module:
    """Random weights and BatchNorm statistics, in float64 and eval mode."""
    network = network.double().eval()
    for tensor in network.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_(0.4 + 0.3 * torch.randn(tensor.shape, generator=generator))
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_var.abs_().add_(0.5)
    return network


def conv_net(generator: torch.Generator) -> nn.Module:
    """Two convolutions (one with bias) with BatchNorm and a ReLU that works in place."""
    network = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1, bias=False),
        nn.BatchNorm2d(3),
        nn.ReLU(inplace=True),
        nn.Conv2d(3, 2, 3, stride=2),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(2 * 2 * 2, CLASSES + 1),  # one logit that is not asked for
    )
    return randomise(network, generator)


def rows(n: int, shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, *shape, generator=generator, dtype=torch.float64)
    return x, torch.randint(CLASSES, (n,), generator=generator)


def gradients(
    network: nn.Module, parameters: list[Tensor], x: Tensor, y: Tensor
) -> list[tuple[Tensor, ...]]:
    """Row by row: the gradients of −log p(y|x), with p over the first classes."""
    found = []
    for row, label in zip(x, y, strict=True):
        log_p = network(row[None])[0, :CLASSES].log_softmax(0)
        found.append(torch.autograd.grad(-log_p[label], parameters))
    return found


def dense_fisher(network: nn.Module, layer: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """1/n Σ_i of the outer products of the layer's gradients, in the order of weight_matrix."""
    parameters = [layer.weight] if layer.bias is None else [layer.weight, layer.bias]
    total = torch.zeros(())
    for found in gradients(network, parameters, x, y):
        columns = [found[0].flatten(1), *(bias[:, None] for bias in found[1:])]
        gradient = torch.cat(columns, 1).flatten()
        total = total + torch.outer(gradient, gradient)
    return total / len(x)


def kron_fisher(network: nn.Module, name: str, x: Tensor, y: Tensor) -> Tensor:
    layers = kronecker_layers(network)
    a, g = (factor / len(x) for factor in kronecker_factors(network, layers, x, y, CLASSES)[name])
    return torch.kron(g, a)


# The diagonal


@pytest.mark.parametrize("chunk", [(1, 2**26), (3, 2**26), (64, 2**26), (64, 1), (64, 500)])
def test_diagonal_is_the_sum_of_squared_gradients_of_each_row(
    chunk: tuple[int, int], generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curvature, "ROWS", chunk[0])
    monkeypatch.setattr(curvature, "ELEMENTS", chunk[1])
    network, (x, y) = conv_net(generator), rows(7, (2, 5, 5), generator)
    parameters = dict(network.named_parameters())
    with torch.no_grad():
        found = diagonal_fisher(network, parameters, x, y, CLASSES)
    expected = gradients(network, list(parameters.values()), x, y)
    for name, squares in zip(parameters, zip(*expected, strict=True), strict=True):
        torch.testing.assert_close(found[name], sum(g.square() for g in squares))
        assert found[name].abs().sum() > 0


def test_diagonal_of_some_parameters_is_their_part_of_the_whole(
    generator: torch.Generator,
) -> None:
    network, (x, y) = conv_net(generator), rows(5, (2, 5, 5), generator)
    parameters = dict(network.named_parameters())
    whole = diagonal_fisher(network, parameters, x, y, CLASSES)
    part = diagonal_fisher(network, {"1.weight": parameters["1.weight"]}, x, y, CLASSES)
    assert list(part) == ["1.weight"]
    torch.testing.assert_close(part["1.weight"], whole["1.weight"])
    assert diagonal_fisher(network, {}, x, y, CLASSES) == {}


def test_gradients_of_rows_are_held_for_few_rows_at_once(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most ROWS rows, and ELEMENTS numbers unless one row has more."""
    sizes: list[int] = []

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(CLASSES, dtype=torch.float64))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale

    def recorded(function: Any, **options: Any) -> Any:
        mapped = torch.func.vmap(function, **options)
        return lambda theta, x, y: sizes.append(len(x)) or mapped(theta, x, y)

    monkeypatch.setattr(curvature, "vmap", recorded)
    monkeypatch.setattr(curvature, "ROWS", 4)
    network, (x, y) = Scale(), rows(6, (CLASSES,), generator)
    for elements in (2**26, 3 * CLASSES, 1):
        monkeypatch.setattr(curvature, "ELEMENTS", elements)
        diagonal_fisher(network, dict(network.named_parameters()), x, y, CLASSES)
    assert sizes == [4, 2, 3, 3, *[1] * 6]


@pytest.mark.parametrize(("cache", "parts"), [(1, 5), (24, 5), (48, 3), (2**19, 1)])
def test_products_are_added_in_parts_of_a_size(
    cache: int, parts: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5 rows of 24 products each: as many rows at once as CACHE numbers hold, one at least."""
    monkeypatch.setattr(curvature, "CACHE", cache)
    g = torch.randn(5, 7, 6, dtype=torch.float64, generator=generator)
    a = torch.randn(5, 7, 4, dtype=torch.float64, generator=generator)
    with Squares() as squares:
        found = _squared_products(g, a, 1)
    assert squares.count == parts
    torch.testing.assert_close(found, torch.einsum("nto,nti->noi", g, a).square().sum(0))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("positions", [1, 2, 3])
def test_products_of_few_positions(positions: int, groups: int, generator: torch.Generator) -> None:
    """Each position of a row adds to its gradient, which is squared afterwards."""
    g = torch.randn(5, positions, 2 * groups, dtype=torch.float64, generator=generator)
    a = torch.randn(5, positions, 3 * groups, dtype=torch.float64, generator=generator)
    parts = zip(g.split(2, 2), a.split(3, 2), strict=True)
    expected = [torch.einsum("nto,nti->noi", *part).square().sum(0) for part in parts]
    torch.testing.assert_close(_squared_products(g, a, groups), torch.cat(expected))


class Squares(TorchFunctionMode):
    """Counts how often numbers are squared in place."""

    count = 0

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += function is Tensor.square_
        return function(*args, **(kwargs or {}))


def test_all_layers_of_a_plain_network_take_one_backward_pass(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None goes row by row, which takes many times as long."""
    network, (x, y) = conv_net(generator), rows(3, (2, 5, 5), generator)
    left: list[list[str]] = []
    row_by_row = curvature._row_by_row
    monkeypatch.setattr(
        curvature, "_row_by_row", lambda *given: left.append(list(given[1])) or row_by_row(*given)
    )
    diagonal_fisher(network, dict(network.named_parameters()), x, y, CLASSES)
    assert left == [[]]


class Odd(nn.Module):
    """Needs gradients row by row: a shared weight, a layer that runs twice, a bare parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.grouped = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, padding_mode="circular")
        self.deep = nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False)
        self.twice = nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.ones(6))
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.unused = nn.Linear(2, 2)
        self.fc = nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.deep(self.grouped(x)).relu_().flatten(2).mT
        x = self.second(self.first(self.twice(self.twice(x)).tanh()).tanh() * self.scale)
        return self.fc(x.mean(1))


@pytest.mark.parametrize("cache", [1, 2**19])
def test_diagonal_where_gradients_cannot_all_be_written_out(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch, cache: int
) -> None:
    monkeypatch.setattr(curvature, "CACHE", cache)
    network = randomise(Odd(), generator)
    x, y = rows(5, (4, 6, 6), generator)
    parameters = dict(network.named_parameters())
    squares = diagonal_fisher(network, parameters, x, y, CLASSES)
    assert list(squares) == list(parameters)
    for name, parameter in parameters.items():
        expected = torch.zeros_like(parameter)
        for i in range(5):
            loss = F.cross_entropy(network(x[i : i + 1]), y[i : i + 1])
            (gradient,) = torch.autograd.grad(
                loss, parameter, materialize_grads=True, allow_unused=True
            )
            expected += gradient.square()
        torch.testing.assert_close(squares[name], expected, rtol=1e-8, atol=1e-14)


def test_curvature_leaves_the_network_alone(generator: torch.Generator) -> None:
    network, (x, y) = conv_net(generator), rows(5, (2, 5, 5), generator)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    diagonal_fisher(network, dict(network.named_parameters()), x, y, CLASSES)
    kronecker_factors(network, kronecker_layers(network), x, y, CLASSES)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())
    assert not any(module._forward_hooks for module in network.modules())


def test_other_classes_have_no_curvature(generator: torch.Generator) -> None:
    network, (x, y) = conv_net(generator), rows(5, (2, 5, 5), generator)
    found = diagonal_fisher(network, dict(network.named_parameters()), x, y, CLASSES)
    assert torch.count_nonzero(found["6.weight"][CLASSES:]) == 0
    assert torch.count_nonzero(found["6.weight"][:CLASSES]) > 0


# Kronecker factors


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["0", "2", "4"])
def test_every_linear_block_is_the_dense_fisher_for_one_row(
    name: str, bias: bool, generator: torch.Generator
) -> None:
    layers = [nn.Linear(3, 5, bias=bias), nn.Tanh(), nn.Linear(5, 2, bias=bias), nn.Tanh()]
    network = randomise(nn.Sequential(*layers, nn.Linear(2, CLASSES, bias=bias)), generator)
    x, y = rows(1, (3,), generator)
    dense = dense_fisher(network, network.get_submodule(name), x, y)
    torch.testing.assert_close(kron_fisher(network, name, x, y), dense)
    assert dense.abs().max() > 1e-4


def test_linear_block_is_the_dense_fisher_where_inputs_and_gradients_are_independent(
    generator: torch.Generator,
) -> None:
    """Without weights the prediction is uniform; then every input with every label."""
    network = nn.Sequential(nn.Linear(3, CLASSES)).double()
    nn.init.zeros_(network[0].weight)
    nn.init.zeros_(network[0].bias)
    inputs = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    x, y = inputs.repeat_interleave(CLASSES, 0), torch.arange(CLASSES).repeat(5)
    dense = dense_fisher(network, network[0], x, y)
    torch.testing.assert_close(kron_fisher(network, "0", x, y), dense)


def test_in_general_the_trace_is_of_the_right_size(generator: torch.Generator) -> None:
    """In general a and g are not independent, and E|g|² E|a|² only resembles E|g|²|a|²."""
    network, (x, y) = conv_net(generator), rows(64, (2, 5, 5), generator)
    squares = diagonal_fisher(network, dict(network.named_parameters()), x, y, CLASSES)
    exact = (squares["6.weight"].sum() + squares["6.bias"].sum()) / len(x)
    assert 0.5 < kron_fisher(network, "6", x, y).trace() / exact < 2


GEOMETRIES = [
    {"kernel_size": 3},
    {"kernel_size": 3, "padding": 1, "bias": False},
    {"kernel_size": (2, 3), "stride": (2, 1), "padding": (0, 2)},
    {"kernel_size": 2, "dilation": 2, "padding": "valid"},
    {"kernel_size": (3, 5), "padding": "same"},
    {"kernel_size": 3, "padding": 1, "padding_mode": "reflect", "bias": False},
]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_convolution_factors_add_up_over_patches(
    geometry: dict[str, object], generator: torch.Generator
) -> None:
    """The patch of a position is the gradient of its output by the weights: found by autograd."""
    layer = randomise(nn.Conv2d(2, 3, **geometry), generator)
    x, _ = rows(3, (2, 5, 6), generator)
    height, width = layer(x).shape[2:]
    g = torch.randn(3, 3, height, width, generator=generator, dtype=torch.float64)
    parameters = [layer.weight] if layer.bias is None else [layer.weight, layer.bias]
    a_sum, g_sum = torch.zeros(()), torch.zeros(())
    for i in range(3):
        for row in range(height):
            for column in range(width):
                output = layer(x[i : i + 1])[0, 0, row, column]
                patch = torch.autograd.grad(output, parameters)
                a = torch.cat([part[0].flatten() for part in patch])
                a_sum = a_sum + torch.outer(a, a)
                at = g[i, :, row, column]
                g_sum = g_sum + torch.outer(at, at) / (height * width)
    found_a, found_g = layer_factors(layer, x, g)
    torch.testing.assert_close(found_a, a_sum)
    torch.testing.assert_close(found_g, g_sum)


def test_convolution_over_the_whole_image_is_a_linear_layer(generator: torch.Generator) -> None:
    network = nn.Sequential(nn.Conv2d(2, 3, 4), nn.Flatten(), nn.Linear(3, CLASSES))
    x, y = rows(1, (2, 4, 4), generator)
    network = randomise(network, generator)
    dense = dense_fisher(network, network[0], x, y)
    torch.testing.assert_close(kron_fisher(network, "0", x, y), dense)


def test_convolution_block_is_the_dense_fisher_for_a_constant_image_read_at_one_position(
    generator: torch.Generator,
) -> None:
    """K-FAC's assumptions hold: patches are alike, gradients of positions uncorrelated."""

    class OnePosition(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[:, :, 1, 2]

    network = nn.Sequential(nn.Conv2d(2, 3, 2), OnePosition(), nn.Linear(3, CLASSES))
    network = randomise(network, generator)
    x, y = torch.full((1, 2, 4, 4), 0.7, dtype=torch.float64), torch.tensor([2])
    dense = dense_fisher(network, network[0], x, y)
    torch.testing.assert_close(kron_fisher(network, "0", x, y), dense)


def test_linear_layer_over_positions_adds_them_up(generator: torch.Generator) -> None:
    layer = randomise(nn.Linear(3, 2), generator)
    x, g = (torch.randn(4, 5, d, generator=generator, dtype=torch.float64) for d in (3, 2))
    a = torch.cat([x, torch.ones(4, 5, 1, dtype=torch.float64)], 2)
    found_a, found_g = layer_factors(layer, x, g)
    torch.testing.assert_close(found_a, torch.einsum("nti,ntj->ij", a, a))
    torch.testing.assert_close(found_g, torch.einsum("nti,ntj->ij", g, g) / 5)


def test_factors_are_those_of_the_gradients_by_the_layers_outputs(
    generator: torch.Generator,
) -> None:
    """Also where a ReLU alters the output in place after the layer."""
    network, (x, y) = conv_net(generator), rows(4, (2, 5, 5), generator)
    layers = kronecker_layers(network)
    assert list(layers) == ["0", "3", "6"]
    found = kronecker_factors(network, layers, x, y, CLASSES)
    between = network[0](x)
    after = network[3](F.relu(network[1](between)))
    logits = network[6](F.relu(after).flatten(1))
    loss = F.cross_entropy(logits[:, :CLASSES], y, reduction="sum")
    g0, g3, g6 = torch.autograd.grad(loss, [between, after, logits])
    expected = {
        "0": layer_factors(network[0], x, g0),
        "3": layer_factors(network[3], F.relu(network[1](between)).detach(), g3),
        "6": layer_factors(network[6], F.relu(after).flatten(1).detach(), g6),
    }
    for name, factors in expected.items():
        for ours, theirs in zip(found[name], factors, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_trainable_linear_layers_and_ungrouped_convolutions_have_factors() -> None:
    network = nn.Sequential(
        nn.Conv2d(2, 4, 1), nn.Conv2d(4, 4, 1, groups=2), nn.BatchNorm2d(4), nn.Linear(4, 2)
    )
    assert list(kronecker_layers(network)) == ["0", "3"]
    network[0].weight.requires_grad_(False)
    assert list(kronecker_layers(network)) == ["3"]


def test_layers_that_run_twice_or_not_at_all(generator: torch.Generator) -> None:
    class Odd(nn.Module):
        def __init__(self, times: int) -> None:
            super().__init__()
            self.used, self.idle = nn.Linear(CLASSES, CLASSES), nn.Linear(2, 2)
            self.aside, self.times = nn.Linear(CLASSES, 2), times

        def forward(self, x: Tensor) -> Tensor:
            self.aside(x)
            for _ in range(self.times):
                x = self.used(x)
            return x

    x, y = torch.randn(3, CLASSES, generator=generator), torch.tensor([0, 1, 2])
    network = Odd(1)
    found = kronecker_factors(network, kronecker_layers(network), x, y, CLASSES)
    assert set(found) == {"used", "aside"}
    assert torch.count_nonzero(found["aside"][1]) == 0
    with pytest.raises(UserError, match="'used' ran twice"):
        kronecker_factors(network := Odd(2), kronecker_layers(network), x, y, CLASSES)


class Windows(nn.Module):
    """Positions folded into the batch axis for one layer, as shifted windows are."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.last = nn.Linear(3, 5), nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.inner(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        return self.last(hidden.relu().mean(1))


def test_rows_of_a_layer_that_are_not_samples(generator: torch.Generator) -> None:
    network = randomise(Windows(), generator)
    x, y = rows(4, (6, 3), generator)
    parameters = dict(network.named_parameters())
    squares = diagonal_fisher(network, parameters, x, y, CLASSES)
    for name, parameter in parameters.items():
        losses = (F.cross_entropy(network(x[i : i + 1]), y[i : i + 1]) for i in range(len(x)))
        gradients = [torch.autograd.grad(loss, parameter)[0] for loss in losses]
        torch.testing.assert_close(squares[name], torch.stack(gradients).square().sum(0))
    with pytest.raises(UserError, match="'inner' was given 24 rows for 4 samples"):
        kronecker_factors(network, kronecker_layers(network), x, y, CLASSES)


# The quadratic form


def test_weight_matrix_multiplies_the_patches(generator: torch.Generator) -> None:
    layer = randomise(nn.Linear(3, 2), generator)
    x, _ = rows(4, (3,), generator)
    homogeneous = torch.cat([x, torch.ones(4, 1, dtype=torch.float64)], 1)
    torch.testing.assert_close(homogeneous @ weight_matrix(layer).mT, layer(x))
    layer.bias.requires_grad_(False)
    assert torch.equal(weight_matrix(layer), layer.weight)


def test_quadratic_form_and_its_gradient_are_those_of_the_dense_matrix(
    generator: torch.Generator,
) -> None:
    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    a, g, delta = random(4, 4), random(3, 3), random(3, 4).requires_grad_()
    a, g = a @ a.mT, g @ g.mT
    dense = torch.kron(g, a)
    expected = delta.flatten() @ dense @ delta.flatten()
    found = kronecker_quadratic(delta, a, g)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(3 * found, delta), torch.autograd.grad(3 * expected, delta)
    )


def test_largest_eigenvalue_of_a_covariance(generator: torch.Generator) -> None:
    a = torch.randn(30, 8, generator=generator, dtype=torch.float64)
    a[:, 0] *= 4
    matrix = a.mT @ a
    exact = torch.linalg.eigvalsh(matrix)[-1].item()
    assert largest_eigenvalue(matrix) == pytest.approx(exact, rel=1e-3)
    assert largest_eigenvalue(torch.zeros(3, 3)) == 0


# Labels


def test_sampled_labels_follow_the_prediction() -> None:
    p = torch.tensor([0.1, 0.2, 0.7])
    logits = (p.log() + 5).repeat(20_000, 1)
    y = sample_labels(logits, torch.Generator().manual_seed(0))
    frequency = torch.bincount(y, minlength=3) / len(y)
    torch.testing.assert_close(frequency, p, atol=0.012, rtol=0)  # 4 standard deviations
    assert torch.equal(y, sample_labels(logits, torch.Generator().manual_seed(0)))
    assert not torch.equal(y, sample_labels(logits, torch.Generator().manual_seed(1)))


def test_the_only_class_is_drawn() -> None:
    assert sample_labels(torch.zeros(3, 1), torch.Generator()).tolist() == [0, 0, 0]


def test_labels_are_not_drawn_from_nan() -> None:
    with pytest.raises(ValueError, match="finite"):
        sample_labels(torch.tensor([[0.0, torch.nan]]), torch.Generator())
