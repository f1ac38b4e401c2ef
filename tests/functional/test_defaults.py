"""The default of every number: the same result as with the number given, another with another."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.functional import singular, spectral
from liderlab.functional.curvature import largest_eigenvalue
from liderlab.functional.hessian_products import hutchinson_trace
from liderlab.functional.jacobian import jacobian_lipschitz
from liderlab.functional.lanczos import top_eigenvalues
from liderlab.functional.lipschitz import batch_lipschitz, spatial_lipschitz
from liderlab.functional.sharpness import combined
from liderlab.functional.statistics import mean_interval, paired_difference


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Eigenvalues that lie close together: the number of steps and the tolerance show in the result.
CLOSE = torch.diag(torch.linspace(1, 1.2, 200, dtype=torch.float64))
POINT = randn(3, 20).requires_grad_()
STRETCHED = POINT @ CLOSE[:20, :20]
MAPS = randn(2, 6, 5, 5), randn(2, 6, 5, 5, seed=1)
CONVOLUTION = nn.Conv2d(2, 2, 3, padding=1, bias=False).double()
CONVOLUTION.weight.data.copy_(randn(2, 2, 3, 3))
POWER = {"iterations": 10, "tol": 1e-6}

CASES: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "largest eigenvalue": (partial(largest_eigenvalue, CLOSE), {"iterations": 20}),
    "trace": (partial(hutchinson_trace, lambda v: randn(9, 9).float() @ v, 9), {"samples": 32}),
    "jacobian": (partial(jacobian_lipschitz, POINT, STRETCHED), POWER),
    "spatial": (partial(spatial_lipschitz, *MAPS), POWER),
    "batch": (partial(batch_lipschitz, randn(30, 40), randn(30, 40, seed=1)), POWER),
    "eigenvalues": (
        partial(top_eigenvalues, lambda v: CLOSE @ v, 200, like=CLOSE),
        {"k": 1, "tol": 1e-4},
    ),
    "power iteration": (partial(singular.power_iteration, CLOSE, 50), {"tol": 0.0}),
    "direction": (
        partial(spectral.power_iteration, lambda v: CLOSE @ v, CLOSE.sum(0)),
        {"iterations": 1},
    ),
    "operator norm": (
        partial(spectral.operator_norm, lambda v: CLOSE @ v, (200,), like=CLOSE),
        {"tol": 1e-6},
    ),
    "norm of a convolution": (
        partial(spectral.spectral_norm, CONVOLUTION, (2, 16, 16)),
        {"tol": 1e-6},
    ),
    "sum": (partial(combined, {"w": randn(3)}, {"w": randn(3, seed=1)}), {"factor": 1.0}),
    "interval": (partial(mean_interval, [1.0, 2.0, 4.0]), {"confidence": 0.95}),
    "difference": (
        partial(paired_difference, {0: 1.0, 1: 2.0, 2: 4.0}, {0: 0.0, 1: 0.0, 2: 0.0}),
        {"confidence": 0.95},
    ),
}
SEEDED: dict[str, Callable[..., Any]] = {
    "trace": CASES["trace"][0],
    "eigenvalues": partial(CASES["eigenvalues"][0], tol=0.1),
}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return all(same(one[name], other[name]) for name in one)
    return torch.equal(one, other) if isinstance(one, Tensor) else one == other


@pytest.mark.parametrize("case", CASES)
def test_defaults(case: str) -> None:
    compute, defaults = CASES[case]
    found = compute()
    assert same(found, compute(**defaults))
    for name, value in defaults.items():
        other = value + 1 if isinstance(value, int) else value + (0.1 if value < 0.5 else 0.04)
        assert not same(found, compute(**{name: other})), name


@pytest.mark.parametrize("case", SEEDED)
def test_without_a_generator_the_seed_is_0(case: str) -> None:
    compute = SEEDED[case]
    assert same(compute(), compute(generator=generator(0)))
    assert not same(compute(), compute(generator=generator(1)))
