"""The toy on the plane: learned, shown in full, the same every time, smoother with LiDER."""

import json

import numpy as np
import pytest
import torch

from liderlab.analysis import toy_boundaries, toy_tasks

SHORT = {"tasks": 2, "steps": 60, "grid": 15}


@pytest.fixture(scope="module")
def both():
    return {lider: toy_boundaries(lider=lider, **SHORT) for lider in (False, True)}


def test_tasks_are_crescents_that_do_not_overlap_much():
    tasks = toy_tasks(3, per_class=300, noise=0.05)
    centres = torch.stack([x.mean(0) for x, _ in tasks])
    assert torch.pdist(centres).min() > 2
    for number, (x, y) in enumerate(tasks):
        assert y.unique().tolist() == [2 * number, 2 * number + 1]
        nearest = torch.cdist(x, x).fill_diagonal_(torch.inf).argmin(1)
        assert (y[nearest] == y).float().mean() > 0.95


def test_shapes_and_ranges_of_the_result(both):
    result = both[False]
    assert result.regions.shape == result.probability.shape == (2, 15, 15)
    assert result.regions[0].max() <= 1  # classes to come are not predicted
    assert set(np.unique(result.regions[1])) == {0, 1, 2, 3}
    assert np.isnan(result.accuracy[0, 1])
    assert result.accuracy[0, 0] > 70
    assert result.final_accuracy == pytest.approx(result.accuracy[1].mean())
    assert [len(x) for x in result.memory_x] == [24, 24]
    assert json.loads(json.dumps(result.to_dict()))["accuracy"][0][1] is None


def test_both_start_alike_and_the_first_task_has_no_replay(both):
    np.testing.assert_array_equal(both[False].regions[0], both[True].regions[0])
    np.testing.assert_array_equal(both[False].memory_x[1], both[True].memory_x[1])
    assert not np.array_equal(both[False].probability[1], both[True].probability[1])


def test_lider_lowers_confidence_away_from_the_data(both):
    assert both[True].probability[1].mean() < both[False].probability[1].mean() - 0.01


def test_it_repeats_and_leaves_global_randomness_alone():
    before = torch.random.get_rng_state()
    a, b = (toy_boundaries(lider=True, tasks=2, steps=3, grid=5) for _ in range(2))
    assert np.array_equal(a.probability, b.probability)
    assert torch.equal(before, torch.random.get_rng_state())
