"""Steps uphill and projections, against their definitions in float64."""

import pytest
import torch
from torch import Tensor

from liderlab.functional.sharpness import ascent, product, projected

Tensors = dict[str, Tensor]


def gradient(seed: int) -> Tensors:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"a": (3, 2), "b": (4,)}
    return {
        name: torch.randn(shape, generator=generator, dtype=torch.float64)
        for name, shape in shapes.items()
    }


def flat(tensors: Tensors) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


def test_product_runs_over_all_tensors() -> None:
    one, other = gradient(0), gradient(1)
    assert product(one, other).item() == pytest.approx((flat(one) @ flat(other)).item())


def test_ascent_is_the_highest_point_of_the_linearised_loss_on_the_sphere() -> None:
    g, rho = gradient(0), 0.3
    found = flat(ascent(g, rho))
    assert found.norm().item() == pytest.approx(rho)
    others = torch.randn(1000, len(found), dtype=torch.float64)
    others = rho * others / others.norm(dim=1, keepdim=True)
    assert (others @ flat(g)).max() < found @ flat(g)


def test_adaptive_ascent_is_the_highest_point_on_the_ellipsoid() -> None:
    g, weights, rho = gradient(0), gradient(1), 0.3
    scale = {name: weight.abs() for name, weight in weights.items()}
    found = flat(ascent(g, rho, scale))
    assert (found / flat(scale)).norm().item() == pytest.approx(rho)
    others = torch.randn(1000, len(found), dtype=torch.float64)
    others = rho * others / others.norm(dim=1, keepdim=True) * flat(scale)
    assert (others @ flat(g)).max() < found @ flat(g)


def test_a_zero_gradient_has_no_direction() -> None:
    zero = {name: torch.zeros_like(tensor) for name, tensor in gradient(0).items()}
    assert not flat(ascent(zero, 0.3)).any()


@pytest.mark.parametrize("seed", range(6))
def test_projection_is_the_nearest_gradient_that_does_not_oppose(seed: int) -> None:
    g, r = gradient(seed), gradient(seed + 10)
    found = flat(projected(g, r))
    if (product(g, r) >= 0).item():
        assert torch.equal(found, flat(g))
        return
    assert (found @ flat(r)).item() == pytest.approx(0, abs=1e-12)
    steps = torch.linspace(-2, 2, 4001, dtype=torch.float64)[:, None]
    line = flat(g) + steps * flat(r)  # the nearest allowed point lies in this direction
    allowed = line[(line @ flat(r)) >= 0]
    nearest = allowed[(allowed - flat(g)).norm(dim=1).argmin()]
    assert torch.allclose(found, nearest, atol=2e-3)


def test_both_cases_of_the_projection_are_tried() -> None:
    signs = {(product(gradient(s), gradient(s + 10)) >= 0).item() for s in range(6)}
    assert signs == {True, False}


def test_small_gradients_have_a_direction_too() -> None:
    small = {name: 1e-6 * tensor for name, tensor in gradient(0).items()}
    torch.testing.assert_close(flat(ascent(small, 0.3)), flat(ascent(gradient(0), 0.3)))
    against = {name: -tensor for name, tensor in gradient(0).items()}
    assert flat(projected(against, small)).norm() < 1e-9 * flat(against).norm() + 1e-12
