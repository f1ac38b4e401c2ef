"""Decision surfaces: the boundary where it must be, and less area where there is less margin."""

import numpy as np
import pytest
import torch

from liderlab.analysis import decision_surface, follow_decision_surface
from liderlab.analysis.pixels import Pixels


def test_surface_of_a_linear_model_in_closed_form():
    """S = x₀ − x₁; FGSM moves it by −2 j, a random direction by 0 or ±2 i."""
    x, y = torch.tensor([[0.6, 0.4]], dtype=torch.float64), torch.tensor([0])
    surface = decision_surface(lambda x: x, x, y, extent=0.2, points=5)
    np.testing.assert_allclose(surface.height[:, 2], 0.2 - 2 * surface.steps, atol=1e-12)
    slopes = np.diff(surface.height[2]) / 0.1
    assert np.allclose(slopes, slopes[0])
    assert abs(slopes[0]) == pytest.approx(2) or slopes[0] == pytest.approx(0, abs=1e-9)
    assert surface.kept.shape == (1,)
    assert surface.area == pytest.approx(surface.right.mean())


def test_the_middle_of_the_grid_is_the_sample_itself(clouds, train):
    x, y = clouds(40)
    model = train((x, y))
    surface = decision_surface(model, x, y, points=5)
    logits = model(x).detach().double()
    right = logits[torch.arange(40), y]
    logits[torch.arange(40), y] = -torch.inf
    assert surface.height[2, 2] == pytest.approx(float((right - logits.amax(1)).mean()), rel=1e-5)


def test_fgsm_lowers_the_surface_and_its_opposite_lifts_it(clouds, train):
    x, y = clouds(40)
    surface = decision_surface(train((x, y)), x, y, extent=0.05, points=5)
    assert (np.diff(surface.height[:, 2]) < 0).all()


def test_overfitted_samples_keep_more_area_than_others(clouds, train):
    x, y = clouds(100, noise=0.4)
    model = train((x[:20], y[:20]), steps=300)
    inside, outside = (
        decision_surface(model, x[part], y[part], points=7) for part in (slice(20), slice(20, 100))
    )
    assert inside.area > outside.area + 10


def test_normalisation_only_changes_the_units(clouds, train):
    x, y = clouds(20)
    model = train((x, y))
    plain = decision_surface(model, x, y, points=5)
    normal = decision_surface(
        lambda z: model(z * 0.2 + 0.4),
        (x - 0.4) / 0.2,
        y,
        points=5,
        normalisation=Pixels([0.4], [0.2]),
    )
    np.testing.assert_allclose(plain.height, normal.height, atol=1e-4)


def test_the_directions_are_the_same_for_every_model(clouds, train):
    x, y = clouds(40, noise=0.3)
    model, other = train((x, y), steps=50), train((x, y), steps=3)
    groups = {"memory": (x[:10], y[:10]), "others": (x[10:], y[10:])}
    history = follow_decision_surface([model, other, model], groups, points=3)
    first, second, third = history.surfaces["others"]
    np.testing.assert_array_equal(first.height, third.height)
    assert not np.allclose(first.height, second.height)
    assert history.area("memory").shape == (3,)
    assert set(history.to_dict()["surfaces"]) == {"memory", "others"}
