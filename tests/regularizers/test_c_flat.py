"""C-Flat against values of the authors' code, in float64, and in the loop.

How the numbers were made: the class `C_Flat` of github.com/WanNaa/C-Flat (optims/c_flat.py) took
one step with SGD at a learning rate of 0 on `loss` below; the values are the gradients it left.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from liderlab.errors import UserError
from liderlab.regularizers.c_flat import CFlat
from liderlab.training.loop import Loop
from liderlab.types import Gradient

RELEASED = {  # (ρ, λ): gradients of a and b
    (0.2, 0.2): (
        [-1.7994824476052833, -0.43835051919705464, 13.719477881701332],
        [[6.646697877041772, -0.9822848474807524]],
    ),
    (0.05, 1.0): (
        [-1.705775912078168, -0.4221402157252546, 11.734287213001101],
        [[5.965062392806239, -0.7826181976071163]],
    ),
}
START = {
    "a": torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64),
    "b": torch.tensor([[1.5, -0.3]], dtype=torch.float64),
}


def loss(a: Tensor, b: Tensor) -> Tensor:
    mixed = a[0] * a[1] * b[0, 0] + (b.square() * a[2]).sum()
    return a.pow(4).sum() / 4 + mixed + a.sin().sum() * b[0, 1]


def gradient_at(offset: Gradient) -> Gradient:
    moved = {name: (w + offset[name]).requires_grad_() for name, w in START.items()}
    found = torch.autograd.grad(loss(**moved), list(moved.values()))
    return dict(zip(moved, found, strict=True))


ZERO = {name: torch.zeros_like(w) for name, w in START.items()}


@pytest.mark.parametrize(("rho", "weight"), RELEASED)
def test_the_gradient_is_the_authors(rho: float, weight: float) -> None:
    found = CFlat(rho, weight).perturb(gradient_at(ZERO), gradient_at)
    for ours, theirs in zip(found.values(), RELEASED[rho, weight], strict=True):
        expected = torch.tensor(theirs, dtype=torch.float64)
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=0)


def test_for_a_small_radius_it_descends_the_loss_plus_the_norm_of_its_gradient() -> None:
    """g → ∇( L + λ ρ ‖∇L‖ ), the latter by autograd: it shrinks with ρ, so it is divided by ρ."""
    rho, weight = 1e-5, 0.7
    point = {name: w.clone().requires_grad_() for name, w in START.items()}
    first = torch.autograd.grad(loss(**point), list(point.values()), create_graph=True)
    norm = torch.cat([g.flatten() for g in first]).norm()
    steeper = torch.autograd.grad(norm, list(point.values()))
    sam = gradient_at(
        {n: rho * g.detach() / norm.detach() for n, g in zip(point, first, strict=True)}
    )
    found = CFlat(rho, weight).perturb(gradient_at(ZERO), gradient_at)
    for ours, base, slope in zip(found.values(), sam.values(), steeper, strict=True):
        torch.testing.assert_close((ours - base) / rho, weight * slope, rtol=1e-3, atol=1e-3)


def test_without_its_weight_it_is_sam(
    build: Callable[..., Loop], differences: Callable[..., list[str]]
) -> None:
    states = []
    for regularizers in ({"sam": {"rho": 0.1}}, {"c-flat": {"rho": 0.1, "weight": 0.0}}):
        loop = build("er", regularizers, epochs=1)
        assert all(loop)
        states.append(loop.network.state_dict())
    assert not differences(*states)


def test_it_does_not_go_with_sam(build: Callable[..., Loop]) -> None:
    with pytest.raises(UserError, match="both perturb the weights within a step: choose one"):
        build("er", {"sam": {}, "c-flat": {}})
