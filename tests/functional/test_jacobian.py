"""The local estimate against Jacobians written out, in float64: value and gradient."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from liderlab.functional.jacobian import jacobian_lipschitz


def stage(seed: int = 0) -> nn.Sequential:
    """Convolution, BatchNorm with its own statistics, a smooth activation, another convolution."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.GELU(),
            nn.Conv2d(4, 3, 3, stride=2, padding=1),
        )
        nn.init.uniform_(layers[1].running_mean, -0.5, 0.5)
        nn.init.uniform_(layers[1].running_var, 0.5, 2.0)
        nn.init.uniform_(layers[1].weight, 0.5, 2.0)
    return layers.double().eval()


def maps(n: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 2, 4, 4, generator=generator, dtype=torch.float64)


def dense(model: nn.Module, x: Tensor, parameters: dict[str, Tensor] | None = None) -> Tensor:
    """(n, outputs, inputs), sample by sample."""
    theta = dict(model.named_parameters()) if parameters is None else parameters

    def one(z: Tensor) -> Tensor:
        return functional_call(model, theta, (z[None],))[0].flatten()

    return vmap(jacrev(one))(x).flatten(2)


@pytest.mark.parametrize("iterations", [None, 2000])
@pytest.mark.parametrize("reading", ["singular", "eigenvalue"])
def test_value_is_the_dense_jacobians_top_singular_value(iterations, reading):
    model, x = stage(), maps().requires_grad_()
    ours = jacobian_lipschitz(x, model(x), iterations=iterations, tol=0.0, reading=reading)
    truth = torch.linalg.svdvals(dense(model, x.detach()))[:, 0]
    torch.testing.assert_close(ours, truth if reading == "singular" else truth.square())


@pytest.mark.parametrize("iterations", [None, 2000])
def test_gradient_is_that_of_the_dense_decomposition(iterations):
    model, x = stage(), maps().requires_grad_()
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    wanted = [x, *model.parameters()]
    σ = jacobian_lipschitz(x, model(x), iterations=iterations, tol=0.0)
    ours = torch.autograd.grad((weights * σ).sum(), wanted, materialize_grads=True)
    truth = torch.linalg.svdvals(dense(model, x))[:, 0]
    theirs = torch.autograd.grad((weights * truth).sum(), wanted, materialize_grads=True)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)
    assert all(gradient.abs().max() > 1e-6 for gradient in ours[:2])


def test_few_iterations_never_exceed_the_truth_and_approach_it():
    model, x = stage(), maps().requires_grad_()
    truth = torch.linalg.svdvals(dense(model, x.detach()))[:, 0]
    errors = [
        (truth - jacobian_lipschitz(x, model(x), iterations=count, tol=0.0)).detach()
        for count in (1, 3, 10, 40)
    ]
    assert all((error > -1e-9).all() for error in errors)
    assert all((b <= a + 1e-9).all() for a, b in pairwise(errors))
    assert errors[-1].max() < 0.01 * truth.max()


def test_tolerance_stops_early_near_the_truth():
    matrix = torch.diag(torch.tensor([3.0, 1.0, 0.1]))
    x = torch.randn(2, 3, requires_grad=True)
    calls = []

    class Counting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return z @ matrix

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g @ matrix.T

    loose = jacobian_lipschitz(x, Counting.apply(x), iterations=500, tol=1e-4)
    torch.testing.assert_close(loose, torch.full((2,), 3.0), rtol=1e-3, atol=0)
    assert len(calls) < 50


def test_one_sample_is_enough():
    x = maps(1).requires_grad_()
    found = jacobian_lipschitz(x, 3 * x, iterations=None)
    torch.testing.assert_close(found, torch.tensor([3.0], dtype=torch.float64))


def test_the_tolerance_is_relative():
    """The number of steps does not depend on the size of the constant."""
    matrix = torch.diag(torch.linspace(1, 2, 9, dtype=torch.float64))

    def steps(scale: float) -> int:
        calls = []

        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, z):
                return scale * (z @ matrix)

            @staticmethod
            def backward(ctx, g):
                calls.append(1)
                return scale * (g @ matrix)

        x = torch.ones(1, 9, dtype=torch.float64, requires_grad=True)
        jacobian_lipschitz(x, Scaled.apply(x), iterations=500, tol=1e-4)
        return len(calls)

    assert steps(2.0**-10) == steps(1.0) == steps(2.0**10) < 100


def test_the_iteration_stops_at_once_where_there_is_no_slope():
    x = torch.randn(2, 3, requires_grad=True)
    calls = []

    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return z * 0

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * 0

    jacobian_lipschitz(x, Flat.apply(x), iterations=500)
    assert len(calls) == 3  # Jᵀ w for all steps, one step, and the value


def test_the_start_differs_between_channels():
    """Else a stage that takes out the channels' mean would seem to be constant."""
    x = maps().requires_grad_()
    found = jacobian_lipschitz(x, x - x.mean(1, keepdim=True))
    torch.testing.assert_close(found, torch.ones(3, dtype=torch.float64))


def test_an_independent_map_has_constant_zero_and_no_nan():
    x = maps().requires_grad_()
    dead = jacobian_lipschitz(x, (0 * x).relu())
    assert torch.equal(dead, torch.zeros(3, dtype=torch.float64))
    other = torch.ones(3, 2, requires_grad=True)
    assert torch.equal(jacobian_lipschitz(x, other * 2), torch.zeros(3, dtype=torch.float64))


def test_samples_are_independent():
    model, x = stage(), maps()
    both, alone = x.clone().requires_grad_(), x[1:2].clone().requires_grad_()
    torch.testing.assert_close(
        jacobian_lipschitz(both, model(both), tol=0.0)[1:2],
        jacobian_lipschitz(alone, model(alone), tol=0.0),
    )


def test_without_gradient_mode_the_value_is_the_same_and_carries_none():
    model, x = stage(), maps().requires_grad_()
    later = model(x)
    with torch.no_grad():
        plain = jacobian_lipschitz(x, later)
    assert not plain.requires_grad
    assert torch.equal(plain, jacobian_lipschitz(x, later).detach())


def test_global_generator_is_left_alone():
    model, x = stage(), maps().requires_grad_()
    before = torch.random.get_rng_state()
    jacobian_lipschitz(x, model(x))
    assert torch.equal(before, torch.random.get_rng_state())


def test_wrong_arguments_are_refused():
    x = maps().requires_grad_()
    with pytest.raises(ValueError, match="same samples"):
        jacobian_lipschitz(x, x[:2] * 2)
    for earlier, later in ((x.detach(), maps()), (x.detach(), x * 2), (x, maps())):
        with pytest.raises(ValueError, match="autograd computed"):
            jacobian_lipschitz(earlier, later)
    with pytest.raises(ValueError, match="unknown reading"):
        jacobian_lipschitz(x, x * 2, reading="both")
