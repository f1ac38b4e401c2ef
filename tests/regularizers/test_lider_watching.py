"""Passes and rows that count inside `watch()`, and copies that do not."""

import copy
import pickle
import random

import numpy as np
import pytest
import torch
from torch import Tensor

from liderlab import LiDER
from liderlab.backbones.resnet import resnet18
from small_network import STAGES, by_hand, images, network


def test_nothing_watched_is_exactly_zero():
    lider = LiDER(network(), STAGES)
    with pytest.warns(UserWarning, match=r"no watch\(\)"):
        penalty = lider.penalty()
    assert penalty == 0
    assert penalty.shape == ()
    assert not penalty.requires_grad
    assert lider.terms() == {}


def test_a_watched_pass_counts_in_one_penalty():
    model = network()
    lider = LiDER(model, STAGES)
    with lider.watch():
        model(images())
    terms = lider.terms()
    assert lider.penalty() > 0
    logged = lider.terms()  # of the last penalty, for logging
    assert logged == {name: term.detach() for name, term in terms.items()}
    assert not any(term.requires_grad for term in logged.values())
    with pytest.warns(UserWarning, match=r"no watch\(\)"):
        assert lider.penalty() == 0
    assert lider.terms() == {}
    assert lider.penalty() == 0  # warned once: a second warning would be an error


def test_no_warning_at_zero_weight_or_with_too_few_rows():
    assert LiDER(network(), STAGES, alpha=0.0, beta=0.0).penalty() == 0
    model = network()
    lider = LiDER(model, STAGES)
    with lider.watch(torch.tensor([], dtype=torch.long)):
        model(images())
    assert lider.penalty() == 0  # warnings are errors here


@pytest.mark.parametrize("estimator", ["spatial", "batch"])
@pytest.mark.parametrize(
    ("watched", "counted"),
    [(None, [0, 1]), (torch.tensor([3, 0, 5]), [3, 0]), (torch.arange(6) % 2 == 1, [1, 3])],
)
def test_rows_at_most_counts_the_first_ones(estimator, watched, counted):
    """In float64, to the gradient by the weights, as if the others had not been watched."""
    gradients = []
    for options, rows in (({"rows_at_most": 2}, watched), ({}, torch.tensor(counted))):
        model = network().double()
        lider = LiDER(model, STAGES, alpha=0.0, beta=1.0, estimator=estimator, **options)
        with lider.watch(rows):
            model(images(6).double())
        lider.penalty().backward()
        gradients.append(model[0].weight.grad)
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=0)


def test_stages_left_out_are_recorded():
    model = resnet18(10, (1, 8, 8), width=8)
    lider = LiDER()
    lider.attach(model, torch.zeros(2, 1, 8, 8))
    assert lider.resolved() == {
        "chain": ["stem", "layer1", "layer2", "layer3"],
        "left_out": ["input", "layer4"],
    }
    named = LiDER(stages=["stem", "layer1"], from_input=False)
    named.attach(model, torch.zeros(2, 1, 8, 8))
    assert named.resolved() == {"chain": ["stem", "layer1"], "left_out": []}


def test_passes_of_different_sizes_count_equally():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.2, beta=0.7)
    lider.calibrate([images(8, seed=1)])

    def penalty(*passes: Tensor) -> Tensor:
        for x in passes:
            with lider.watch():
                model(x)
        return lider.penalty()

    first, second = images(5, seed=2), images(2, seed=3)
    expected = (penalty(first) + penalty(second)) / 2
    torch.testing.assert_close(penalty(first, second), expected)
    with lider.watch():  # both in one watch
        model(first)
        model(second)
    torch.testing.assert_close(lider.penalty(), expected)


def test_maps_of_another_size_are_another_pass():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.0, beta=1.0)
    with lider.watch():
        model(images(4))
        model(images(2, size=12))
    small, large = by_hand(model, images(4)), by_hand(model, images(2, size=12))
    torch.testing.assert_close(lider.penalty(), (small.mean() + large.mean()) / 2)


@pytest.mark.parametrize("rows", [torch.tensor([True, False, True, False]), torch.tensor([0, 2])])
@pytest.mark.parametrize("estimator", ["spatial", "batch"])
def test_only_the_rows_asked_for_count(rows, estimator):
    model = network().eval()
    lider = LiDER(model, STAGES, estimator=estimator)
    lider.calibrate([images(8, seed=1)])
    with lider.watch(rows):
        model(images())
    some = lider.penalty()
    with lider.watch():
        model(images()[::2])
    torch.testing.assert_close(some, lider.penalty())


@pytest.mark.parametrize(("estimator", "rows"), [("spatial", []), ("batch", []), ("batch", [2])])
def test_too_few_rows_contribute_nothing(estimator, rows):
    model = network()
    lider = LiDER(model, STAGES, estimator=estimator)
    with lider.watch(torch.tensor(rows, dtype=torch.long)):
        model(images())
    assert not lider.calibrated
    assert lider.penalty() == 0
    with lider.watch(torch.tensor(rows, dtype=torch.long)):
        model(images())
    with lider.watch():
        model(images(seed=1))
    both = lider.penalty()
    with lider.watch():
        model(images(seed=1))
    torch.testing.assert_close(both, lider.penalty())  # too few rows are no pass to average with


def test_one_row_is_enough_for_the_spatial_form():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.0, beta=1.0)
    with lider.watch(torch.tensor([3])):
        model(images())
    torch.testing.assert_close(lider.penalty(), by_hand(model, images())[3].mean())


def test_without_the_input_the_chain_starts_at_the_first_stage():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.0, beta=1.0, from_input=False)
    with lider.watch():
        model(images())
    torch.testing.assert_close(lider.penalty(), by_hand(model, images())[:, 1].mean())


def test_zero_weights_give_zero_without_gradient():
    model = network()
    lider = LiDER(model, STAGES, alpha=0.0, beta=0.0)
    with lider.watch():
        model(images())
    assert not (penalty := lider.penalty()).requires_grad
    assert penalty == 0
    assert lider.constants.min() > 0  # it still measures


def test_in_place_activations_leave_the_value_before_them_on_every_pass():
    model = network()
    lider = LiDER(model, STAGES, alpha=0.0, beta=1.0)
    lider.calibrate([images()])
    for _ in range(3):
        with lider.watch():
            model(images())
        torch.testing.assert_close(lider.penalty(), by_hand(model, images()).mean())


def test_autocast_keeps_the_estimate_in_float32():
    model = network()
    lider = LiDER(model, STAGES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with lider.watch():
            assert model(images()).dtype == torch.bfloat16
        penalty = lider.penalty()
    assert penalty.dtype == torch.float32
    penalty.backward()
    assert model[0].weight.grad.isfinite().all()


def test_an_exception_inside_watch_leaves_a_clean_state():
    model = network()
    lider = LiDER(model, STAGES)
    lider.calibrate([images()])
    with lider.watch():  # the step's first pass
        model(images())
    with pytest.raises(RuntimeError, match="channels"), lider.watch():
        model(images(channels=2))
    assert lider.penalty() == 0  # the step is lost as a whole
    with lider.watch():
        model(images())
    assert lider.penalty() > 0


def test_no_random_number_is_drawn():
    model = network()
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    for estimator in ("spatial", "batch"):
        lider = LiDER(model, STAGES, estimator=estimator)
        lider.calibrate([images()])
        with lider.watch():
            model(images())
        lider.penalty().backward()
    found = LiDER(model)
    found.calibrate([images()])
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert np.array_equal(np.random.get_state()[1], states[2][1])


# Copies


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_the_network_are_not_watched(twin_of):
    model = network().eval()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    twin = twin_of(model)
    with lider.watch():
        model(images())
        twin(images(7, seed=5))
    torch.testing.assert_close(
        lider.constants, by_hand(model, images()).mean(0).detach(), rtol=1e-5, atol=0
    )
    with pytest.raises(RuntimeError, match="No pass was recorded"), lider.watch():
        twin(images())


def test_a_copied_lider_is_attached_to_the_copied_network_anew():
    model = network().eval()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    twin_model, twin = copy.deepcopy((model, lider))
    with pytest.raises(RuntimeError, match="attach anew"), twin.watch():
        twin_model(images())
    twin.attach(twin_model)
    with twin.watch():
        twin_model(images())
    with lider.watch():
        model(images())
    assert twin.penalty() == lider.penalty()
    assert torch.equal(twin.targets, lider.targets)
