"""Eqs. 7 to 9: the penalty and its gradients."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from liderlab import LiDER
from small_network import STAGES, by_hand, images, maps, network


@pytest.mark.parametrize("estimator", ["spatial", "batch"])
@pytest.mark.parametrize("reading", ["singular", "eigenvalue"])
@pytest.mark.parametrize("iterations", [None, 3])
def test_penalty_is_alpha_times_c_term_plus_beta_times_0_term(estimator, reading, iterations):
    model = network().eval()
    options = {"estimator": estimator, "reading": reading, "iterations": iterations, "tol": 0.0}
    lider = LiDER(model, STAGES, alpha=0.2, beta=0.7, **options)
    lider.calibrate([images(8, seed=1)])
    with lider.watch():
        model(images())
    λ = by_hand(model, images(), **options)
    c = by_hand(model, images(8, seed=1), **options).mean(0)
    c_term = sum((λ[:, k] - c[k]).abs().mean() for k in range(2)) / 2
    zero_term = sum(λ[:, k].abs().mean() for k in range(2)) / 2
    assert c_term > 1e-4
    terms = lider.terms()
    torch.testing.assert_close(terms["c_lip"], 0.2 * c_term)
    torch.testing.assert_close(terms["0_lip"], 0.7 * zero_term)
    torch.testing.assert_close(lider.penalty(), 0.2 * c_term + 0.7 * zero_term)
    torch.testing.assert_close(lider.constants, λ.mean(0).detach())


def test_swapped_weights_exchange_the_roles():
    model = network().eval()
    penalties = {}
    for weights, alpha, beta in (("paper", 0.2, 0.7), ("swapped", 0.7, 0.2)):
        lider = LiDER(model, STAGES, alpha, beta, weights=weights)
        lider.calibrate([images(8, seed=1)])
        with lider.watch():
            model(images())
        penalties[weights] = lider.terms(), lider.penalty()
    assert penalties["paper"] == penalties["swapped"]


def test_gradient_of_the_network_is_that_of_the_explicit_matrices():
    """The whole penalty against differentiable SVDs of explicit matrices, in float64."""
    model = network().double().eval()
    lider = LiDER(model, STAGES, alpha=0.3, beta=0.5, iterations=300, tol=0.0)
    lider.calibrate([images(8, seed=1).double()])
    x = images().double()
    with lider.watch():
        model(x)
    ours = torch.autograd.grad(lider.penalty(), [model[0].weight, model[3].weight])

    def explicit(a: Tensor, b: Tensor) -> Tensor:
        b = b.unflatten(1, (a.shape[1], -1)).mean(2)
        a, b = (x / x.norm(dim=1, keepdim=True) for x in (a, b))
        a = avg_pool2d(a, a.shape[-1] // b.shape[-1])
        return torch.linalg.svdvals(a.flatten(2) @ b.flatten(2).mT / b[0, 0].numel())[:, 0]

    λ = torch.stack([explicit(a, b) for a, b in pairwise(maps(model, x))], dim=1)
    loss = 0.3 * (λ - lider.targets.detach()).abs().mean() + 0.5 * λ.mean()
    exact = torch.autograd.grad(loss, [model[0].weight, model[3].weight])
    torch.testing.assert_close(ours, exact, rtol=1e-5, atol=1e-7)


def test_gradient_of_the_targets():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.3, beta=0.5)
    lider.calibrate([images(8, seed=1)])
    with torch.no_grad():  # above one of the four samples' λ, below three
        lider.targets.copy_(by_hand(model, images()).sort(0).values[:2].mean(0))
    with lider.watch():
        model(images())
    lider.penalty().backward()
    # α/K · mean over samples of ∂|λ − c|/∂c
    torch.testing.assert_close(lider.targets.grad, torch.full((2,), 0.3 / 2 * (1 - 3) / 4))


def test_negative_targets_count_as_zero():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=1.0, beta=0.0)
    lider.calibrate([images(8, seed=1)])
    with torch.no_grad():
        lider.targets.fill_(-0.5)
    with lider.watch():
        model(images())
    torch.testing.assert_close(lider.penalty(), by_hand(model, images()).mean())
