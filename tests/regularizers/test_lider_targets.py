"""Targets: where they start, and how they move."""

import copy
import warnings
from linecache import getline

import pytest
import torch
from torch.nn.functional import cross_entropy

from liderlab import LiDER
from liderlab.errors import UserError
from small_network import STAGES, by_hand, images, labels, network


def test_calibration_is_the_mean_over_all_samples_in_eval_mode():
    model = network()
    model(images(16, seed=9))  # running statistics that differ from a batch's own
    lider = LiDER(model, STAGES)
    lider.calibrate([(images(5, seed=1), labels(5)), (images(3, seed=2), labels(3))])
    together = torch.cat([images(5, seed=1), images(3, seed=2)])
    expected = by_hand(model.eval(), together).mean(0)
    torch.testing.assert_close(lider.targets.detach(), expected)
    assert lider.calibrated


def test_calibration_of_the_batch_form_weighs_batches_by_size():
    model = network().eval()
    lider = LiDER(model, STAGES, estimator="batch")
    lider.calibrate([images(5, seed=1), images(1, seed=3), images(3, seed=2)])
    large, small = (by_hand(model, images(n, seed=s), "batch")[0] for n, s in ((5, 1), (3, 2)))
    torch.testing.assert_close(lider.targets.detach(), ((5 * large + 3 * small) / 8).detach())


@pytest.mark.parametrize(
    ("estimator", "limit", "used"),
    [
        ("spatial", 7, [4, 3]),
        ("batch", 7, [4, 3]),
        ("spatial", 5, [4, 1]),
        ("batch", 5, [4]),  # one more sample would be of no use
    ],
)
def test_calibration_stops_at_max_samples(estimator, limit, used):
    model, seen, batches = network().eval(), [], iter([images()] * 9)
    model.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    LiDER(model, STAGES, estimator=estimator).calibrate(batches, max_samples=limit)
    assert seen == used
    assert len(list(batches)) == 9 - len(used)  # and asks for no more


def test_calibration_leaves_the_network_as_it_was():
    model = network()
    model[1].eval()
    modes = [module.training for module in model.modules()]
    before = copy.deepcopy(model.state_dict())
    LiDER(model, STAGES).calibrate([images()])
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_without_calibration_the_first_pass_sets_the_targets():
    model = network().eval()
    lider = LiDER(model, STAGES)
    assert not lider.calibrated
    with lider.watch():
        model(images())
        model(images(seed=1))
    torch.testing.assert_close(lider.targets.detach(), by_hand(model, images()).mean(0).detach())
    assert lider.calibrated


def test_targets_move_with_the_optimizer_and_do_not_decay():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.5, beta=0.0)
    lider.calibrate([images(8, seed=1)])
    groups = [{"params": model.parameters()}, *lider.param_groups()]
    optimizer = torch.optim.SGD(groups, lr=0.1, weight_decay=0.5)
    start = lider.targets.detach().clone()
    weight = model[7].weight.detach().clone()  # no gradient reaches it, it only decays
    with lider.watch():
        model(images())
    loss = lider.penalty() + 0 * model(images()).sum()
    loss.backward()
    optimizer.step()
    torch.testing.assert_close(lider.targets.detach(), start - 0.1 * lider.targets.grad)
    assert (lider.targets.grad != 0).any()
    torch.testing.assert_close(model[7].weight.detach(), weight * (1 - 0.1 * 0.5))


def test_learned_targets_follow_lambda():
    """With the network held still, gradient descent takes c_k to the median λ_k."""
    model = network().eval().requires_grad_(False)
    lider = LiDER(model, STAGES, alpha=1.0, beta=0.0)
    lider.calibrate([images(8, seed=1)])
    with torch.no_grad():
        lider.targets.add_(0.2)
    optimizer = torch.optim.SGD(lider.param_groups(), lr=0.02)
    for _ in range(200):
        with lider.watch():
            model(images(5))
        optimizer.zero_grad()
        lider.penalty().backward()
        optimizer.step()
    median = by_hand(model, images(5)).median(0).values
    torch.testing.assert_close(lider.targets.detach(), median, rtol=0, atol=0.012)


def test_fixed_targets_stay():
    model = network()
    lider = LiDER(model, STAGES, learn_targets=False)
    lider.calibrate([images(8, seed=1)])
    assert lider.param_groups() == []
    assert not lider.targets.requires_grad
    start = lider.targets.clone()
    optimizer = torch.optim.SGD([*model.parameters(), *lider.parameters()], lr=0.1)
    with lider.watch():
        logits = model(images())
    (cross_entropy(logits, labels()) + lider.penalty()).backward()
    optimizer.step()
    assert torch.equal(lider.targets, start)
    assert model[0].weight.grad.abs().sum() > 0


def test_parameters_are_the_targets_only_and_state_makes_the_round_trip():
    model = network()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    assert [name for name, _ in lider.named_parameters()] == ["targets"]
    assert set(lider.state_dict()) == {"targets", "calibrated", "constants"}
    assert not any("targets" in name for name in model.state_dict())

    twin = LiDER(network(seed=1).eval(), STAGES)
    twin.load_state_dict(lider.state_dict())
    with twin.watch():
        twin._stages.network(images())
    assert torch.equal(twin.targets, lider.targets)  # not set anew by the first pass
    assert twin.calibrated


def train(lider, model, optimizer, steps=4, accumulate=1):
    for step in range(steps):
        with lider.watch():
            logits = model(images())
        loss = cross_entropy(logits, labels()) + lider.penalty()
        if step % accumulate == 0:
            optimizer.zero_grad()
        loss.backward()
        if step % accumulate == accumulate - 1:
            optimizer.step()


def test_targets_forgotten_in_the_optimizer_are_warned_about_once():
    model = network()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    start = lider.targets.detach().clone()
    with pytest.warns(UserWarning, match=r"param_groups\(\)") as caught:
        train(lider, model, torch.optim.SGD(model.parameters(), lr=0.1), steps=8)
    assert len(caught) == 1
    assert "lider.penalty()" in getline(caught[0].filename, caught[0].lineno)  # the user's line
    assert torch.equal(lider.targets, start)


OPTIMIZERS = {
    "sgd": lambda groups: torch.optim.SGD(groups, lr=0.1),
    "one by one": lambda groups: torch.optim.SGD(groups, lr=0.1, foreach=False),
    "fused": lambda groups: torch.optim.SGD(groups, lr=0.1, fused=True),
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=0.1),
    "fused adamw": lambda groups: torch.optim.AdamW(groups, lr=0.1, fused=True),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("accumulate", [1, 3])
def test_trained_targets_are_not_warned_about(make, accumulate):
    model = network()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    groups = [{"params": model.parameters()}, *lider.param_groups()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(lider, model, make(groups), steps=7, accumulate=accumulate)


def test_fixed_targets_and_a_network_at_rest_are_not_warned_about():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({"learn_targets": False}, {"alpha": 0.0}):
            model = network()
            lider = LiDER(model, STAGES, **options)
            train(lider, model, torch.optim.SGD(model.parameters(), lr=0.1))
        model = network()
        lider = LiDER(model, STAGES)
        for _ in range(4):  # to look at the gradient, without any step
            with lider.watch():
                model(images())
            lider.penalty().backward()


def test_targets_learn_at_their_own_rate_in_the_lab(build):
    def targets(factor):
        loop = build("er", {"lider": {"target_lr": factor}})
        for _ in zip(range(2), loop, strict=False):  # the second step is the first with replay
            pass
        return loop.regularizers[0].targets.detach()

    start, one, half = targets(0.0), targets(1.0), targets(0.5)
    assert not torch.equal(one, start)
    torch.testing.assert_close(half - start, (one - start) / 2)


@pytest.mark.parametrize("factor", [-1, float("nan"), float("inf"), "fast"])
def test_a_wrong_target_lr_is_refused(factor):
    with pytest.raises(UserError, match="target_lr"):
        LiDER(target_lr=factor)


def test_the_batch_form_calibrates_on_whole_batches():
    """More rows than the other forms take at a time."""
    model, x = network().eval(), images(70, seed=1)
    lider = LiDER(model, STAGES, estimator="batch")
    lider.calibrate([x])
    with torch.no_grad():
        torch.testing.assert_close(lider.targets.data, lider._stages.of_batch(x)[0])
