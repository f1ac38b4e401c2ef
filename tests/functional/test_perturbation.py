"""The worst perturbation within balls, against closed forms, in float64."""

import torch

from liderlab.functional.perturbation import of_length, worst_perturbation


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_of_a_quadratic_form_it_is_the_first_eigenvector():
    """max ½ δᵀHδ over ‖δ‖ ≤ r is ½ λ₁ r², at ±r times the first eigenvector."""
    root = randn(6, 6)
    hessian, radius = root @ root.T, torch.tensor(0.3, dtype=torch.float64)
    delta = {"w": of_length(randn(6, seed=1), 0.1 * radius)}
    for _ in range(200):
        delta = worst_perturbation(
            lambda delta: {"w": hessian @ delta["w"]}, {"w": radius}, delta, steps=2
        )
    found = delta["w"]
    values, vectors = torch.linalg.eigh(hessian)
    torch.testing.assert_close(found @ hessian @ found / 2, values[-1] * radius**2 / 2)
    torch.testing.assert_close((found @ vectors[:, -1]).abs(), radius)


def test_of_a_linear_function_one_step_is_enough_in_every_layer():
    """max Σ_l g_l·δ_l over balls is r_l g_l/‖g_l‖, layer by layer, up to the start."""
    slopes = {"a": randn(3, 2), "b": 1e-3 * randn(5, seed=1)}
    radius = {"a": torch.tensor(0.5), "b": torch.tensor(2.0)}
    start = {name: torch.zeros_like(slope) for name, slope in slopes.items()}
    found = worst_perturbation(lambda delta: slopes, radius, start)
    for name, slope in slopes.items():
        torch.testing.assert_close(found[name], radius[name].double() * slope / slope.norm())


def test_it_never_leaves_the_balls_and_stays_where_there_is_no_slope():
    start = {"a": of_length(randn(4), 0.1), "b": of_length(randn(4, seed=1), 0.1)}
    radius = {"a": torch.tensor(1.0), "b": torch.tensor(1.0)}

    def gradient(delta):
        return {"a": randn(4, seed=2), "b": torch.zeros(4, dtype=torch.float64)}

    found = worst_perturbation(gradient, radius, start, steps=7)
    assert found["a"].norm() <= 1 + 1e-12
    assert torch.equal(found["b"], start["b"])


def test_it_takes_one_step_by_default():
    seen = []

    def gradient(delta):
        seen.append(delta["a"])
        return {"a": delta["a"]}

    worst_perturbation(gradient, {"a": torch.tensor(1.0)}, {"a": randn(3)})
    assert len(seen) == 1
