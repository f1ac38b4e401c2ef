"""Ours against the estimator that the authors of LiDER released.

How the numbers were made: the class `LipOptimizer` of github.com/aimagelab/LiDER, in its file
utils/lipschitz.py, was run on `chain(...)` below (float32) through `get_feature_lip_coeffs`, with
10,000 power iterations instead of its 10; doubling them from 5,000 had moved no value by more than
4e-16. The gradient norms are those of the mean of all its values. `offset` 1 gives maps with a
strong common direction, which power iteration finds at once; `offset` 0 is pure noise, the hardest
case there is.

Theirs is the root of σ² + ε with ε = 1.2e-7, which shows where σ is below 0.01: 1e-3 of the value.
With the same ε put under ours the two agree to float32 precision.
"""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from liderlab.functional.coupling import EPS
from liderlab.functional.lipschitz import spatial_lipschitz

CHAINS = {
    "resnet18": [(3, 32, 32), (64, 32, 32), (64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)],
    "narrow": [(3, 32, 32), (20, 32, 32), (20, 32, 32), (40, 16, 16), (80, 8, 8), (160, 4, 4)],
    "efficientnet": [
        (3, 56, 56),
        (32, 28, 28),
        (16, 28, 28),
        (24, 14, 14),
        (40, 7, 7),
        (112, 4, 4),
        (320, 2, 2),
    ],
    "odd": [(6, 13, 9), (10, 7, 5), (7, 7, 5), (5, 3, 2), (9, 1, 1)],
}

# (chain, offset): per pair of neighbouring maps, the values of two samples
RELEASED = {
    ("resnet18", 1.0): [
        (0.9302708, 0.8816405),
        (0.7966877, 0.8079586),
        (0.8355135, 0.8416773),
        (0.8355762, 0.8412633),
        (0.8356904, 0.8453256),
    ],
    ("narrow", 1.0): [
        (0.9336079, 0.9139993),
        (0.7706535, 0.7688346),
        (0.8289224, 0.8181089),
        (0.8359558, 0.8185306),
        (0.8402520, 0.8309467),
    ],
    ("efficientnet", 1.0): [
        (0.9354077, 0.8803105),
        (0.8262438, 0.8035299),
        (0.8507438, 0.8540965),
        (0.8449379, 0.8498152),
        (0.8697531, 0.8669198),
        (0.8760883, 0.8753051),
    ],
    ("odd", 1.0): [
        (0.8125688, 0.8868791),
        (0.8426422, 0.8799544),
        (0.8922974, 0.8650524),
        (0.9589426, 0.9145277),
    ],
    ("resnet18", 0.0): [
        (0.0311323, 0.0368551),
        (0.0081983, 0.0078939),
        (0.0082197, 0.0082550),
        (0.0161394, 0.0150263),
        (0.0419197, 0.0399026),
    ],
    ("narrow", 0.0): [
        (0.0157185, 0.0254265),
        (0.0131262, 0.0144475),
        (0.0130279, 0.0133194),
        (0.0234117, 0.0238804),
        (0.0495572, 0.0476116),
    ],
    ("efficientnet", 0.0): [
        (0.0176166, 0.0170726),
        (0.0149621, 0.0136750),
        (0.0169772, 0.0163904),
        (0.0300023, 0.0342372),
        (0.0506238, 0.0460996),
        (0.1403365, 0.1475867),
    ],
    ("odd", 0.0): [
        (0.0481320, 0.0517779),
        (0.1254761, 0.1202487),
        (0.1008863, 0.1351554),
        (0.3569963, 0.4368861),
    ],
}

# Euclidean norm of the gradient with respect to each map of the chain, offset 1
RELEASED_GRADIENTS = {
    "resnet18": [
        2.242201e-03,
        3.593826e-04,
        7.269083e-04,
        8.275238e-04,
        1.307518e-03,
        7.870267e-04,
    ],
    "narrow": [1.299551e-03, 1.006683e-03, 1.421318e-03, 1.704445e-03, 2.292688e-03, 1.517681e-03],
    "efficientnet": [
        9.965420e-04,
        5.618942e-04,
        1.213054e-03,
        2.053603e-03,
        2.783308e-03,
        2.796138e-03,
        1.189622e-03,
    ],
}


def chain(name: str, offset: float) -> list[Tensor]:
    generator = torch.Generator().manual_seed([*CHAINS].index(name))
    return [
        torch.rand(2, *shape, generator=generator)
        - 0.5
        + offset * torch.rand(2, shape[0], 1, 1, generator=generator)
        for shape in CHAINS[name]
    ]


def estimate(maps: list[Tensor], iterations: int | None, tol: float = 0.0) -> Tensor:
    """(K, n)."""
    return torch.stack(
        [spatial_lipschitz(a, b, iterations=iterations, tol=tol) for a, b in pairwise(maps)]
    )


@pytest.mark.parametrize("iterations", [None, 1000])
@pytest.mark.parametrize(("name", "offset"), RELEASED)
def test_converged_values_of_the_released_estimator(name, offset, iterations):
    released = torch.tensor(RELEASED[name, offset])
    ours = estimate(chain(name, offset), iterations)
    torch.testing.assert_close(ours, released, rtol=1e-3, atol=0)
    torch.testing.assert_close((ours.square() + EPS).sqrt(), released, rtol=2e-5, atol=0)


@pytest.mark.parametrize(("offset", "error"), [(1.0, 1e-6), (0.0, 0.08)])
@pytest.mark.parametrize("name", CHAINS)
def test_default_ten_iterations_come_close_from_below(name, offset, error):
    released = torch.tensor(RELEASED[name, offset])
    ours = estimate(chain(name, offset), iterations=10, tol=1e-6)
    assert (ours <= released * (1 + 1e-6)).all()
    torch.testing.assert_close(ours, released, rtol=error, atol=0)


@pytest.mark.parametrize("iterations", [None, 10])
@pytest.mark.parametrize("name", RELEASED_GRADIENTS)
def test_gradients_of_the_released_estimator(name, iterations):
    maps = [features.requires_grad_() for features in chain(name, offset=1.0)]
    gradients = torch.autograd.grad(estimate(maps, iterations).mean(), maps)
    norms = torch.stack([gradient.norm() for gradient in gradients])
    torch.testing.assert_close(norms, torch.tensor(RELEASED_GRADIENTS[name]), rtol=1e-4, atol=0)
