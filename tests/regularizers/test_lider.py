"""LiDER in one's own loop, under wrappers, and in the lab."""

import copy
import logging
import pickle
import random
import re
from contextlib import nullcontext
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, cross_entropy

from liderlab import LiDER
from liderlab.backbones.convnet import ConvNet
from liderlab.backbones.mlp import MLP
from liderlab.backbones.network import Network
from liderlab.backbones.resnet import resnet18
from liderlab.errors import UserError
from liderlab.functional.lipschitz import batch_lipschitz, spatial_lipschitz
from liderlab.regularizers import lider as lider_module
from liderlab.training.team import Team

STAGES = ["1", "3"]
ESTIMATES = {"spatial": spatial_lipschitz, "batch": batch_lipschitz}


def network(seed: int = 0, channels: int = 3) -> nn.Sequential:
    """Stage "1" stands in front of an in-place ReLU, stage "3" in front of a plain one."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(channels, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(inplace=True),
            nn.Conv2d(6, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(12, 5),
        )


def images(n: int = 4, seed: int = 0, channels: int = 3, size: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, channels, size, size, generator=generator)


def labels(n: int = 4) -> Tensor:
    return torch.arange(n) % 5


def maps(model: nn.Sequential, x: Tensor) -> list[Tensor]:
    """Input and stages of `network()`, by hand."""
    first = model[1](model[0](x))
    return [x, first, model[3](first.relu())]


def by_hand(
    model: nn.Sequential,
    x: Tensor,
    estimator: str = "spatial",
    **options: object,
) -> Tensor:
    """λ: (n, K), or (1, K) for the batch form."""
    chain = maps(model, x)
    values = [ESTIMATES[estimator](a, b, **options) for a, b in pairwise(chain)]
    return torch.stack([value.reshape(-1) for value in values], dim=1)


# Eqs. 7 to 9


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


# Targets


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
        twin._network(images())
    assert torch.equal(twin.targets, lider.targets)  # not set anew by the first pass
    assert twin.calibrated


# What is watched


def test_nothing_watched_is_exactly_zero():
    lider = LiDER(network(), STAGES)
    with pytest.warns(UserWarning, match=r"no watch\(\)"):
        penalty = lider.penalty()
    assert penalty == 0
    assert penalty.shape == ()
    assert not penalty.requires_grad
    assert lider.terms() == {}


def test_a_penalty_is_paid_once():
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
    assert lider.penalty() == 0  # said once: a warning here would be an error


def test_a_penalty_of_zero_weight_or_of_too_few_rows_is_no_reason_to_warn():
    assert LiDER(network(), STAGES, alpha=0.0, beta=0.0).penalty() == 0
    model = network()
    lider = LiDER(model, STAGES)
    with lider.watch(torch.tensor([], dtype=torch.long)):
        model(images())
    assert lider.penalty() == 0  # warnings are errors here


def test_stages_left_out_are_on_record():
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


def test_passes_are_averaged_whatever_their_size():
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
def test_copies_of_the_network_are_not_heard(twin_of):
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
    with pytest.raises(RuntimeError, match="Nothing was heard"), lider.watch():
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


# Wrappers


def train_step(model: nn.Module, lider: LiDER, backward=Tensor.backward) -> dict[str, Tensor]:
    """Loss values and gradients of one step; `model` may be wrapped."""
    model.train()
    with lider.watch():
        logits = model(images())
    penalty = lider.penalty()
    backward(cross_entropy(logits, labels()) + penalty)
    return {
        "penalty": penalty.detach(),
        "constants": lider.constants,
        "targets": lider.targets.grad,
        "weights": next(model.parameters()).grad,
    }


def plain_step() -> dict[str, Tensor]:
    model = network()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    return train_step(model, lider)


def test_under_ddp(tmp_path):
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        model = network()
        wrapped = nn.parallel.DistributedDataParallel(model)
        lider = LiDER(wrapped, STAGES)
        assert [name for name, _ in lider.named_parameters()] == ["targets"]
        lider.calibrate([images(8, seed=1)])
        torch.testing.assert_close(train_step(wrapped, lider), plain_step())
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("attached", ["before", "after"])
def test_under_fabric(attached):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1)
    model = network()
    lider = LiDER(model, STAGES) if attached == "before" else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped, _ = fabric.setup(model, optimizer)
    lider = lider or LiDER(wrapped, STAGES)
    lider.calibrate([images(8, seed=1)])
    torch.testing.assert_close(train_step(wrapped, lider, fabric.backward), plain_step())


@pytest.mark.parametrize(
    ("backend", "attach_to"), [("eager", "compiled"), ("aot_eager", "network")]
)
def test_under_compile(backend, attach_to):
    torch._dynamo.reset()
    model = network()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    lider = LiDER(model if attach_to == "network" else compiled, STAGES)
    lider.calibrate([images(8, seed=1)])
    torch.testing.assert_close(train_step(compiled, lider), plain_step())
    compiled(images())  # unwatched
    model.eval()
    for seed in (1, 2):  # other values through the same graph
        with lider.watch():
            compiled(images(seed=seed))
        torch.testing.assert_close(
            lider.constants, by_hand(model, images(seed=seed)).mean(0).detach()
        )
    torch._dynamo.reset()


def test_hooks_that_a_compiled_network_leaves_out_are_noticed():
    torch._dynamo.reset()
    model = network()
    compiled = torch.compile(model, backend="eager")
    compiled(images())
    lider = LiDER(compiled, STAGES)  # too late
    with pytest.raises(RuntimeError, match="attach before it is compiled"), lider.watch():
        compiled(images())
    torch._dynamo.reset()


# Stages that nobody named


def test_default_stages_of_our_backbones():
    model = resnet18(10, (3, 16, 16), width=8)
    assert LiDER(model).chain == ["input", "stem", "layer1", "layer2", "layer3", "layer4"]
    assert LiDER(Network(model)).chain == LiDER(model).chain
    assert len(LiDER(model).targets) == 5


def test_stages_are_found_at_calibration_and_said(caplog):
    model = network().eval()
    lider = LiDER(model, alpha=0.0, beta=1.0)
    for needs_stages in (lider.param_groups, lider.watch().__enter__):
        with pytest.raises(RuntimeError, match=r"calibrate\(\)"):
            needs_stages()
    with caplog.at_level(logging.INFO, logger="liderlab"):
        lider.calibrate([images()])
    assert lider.chain == ["input", "2", "4"]
    assert "LiDER watches the stages 2, 4; pass stages=" in caplog.text
    assert lider.param_groups()[0]["params"][0] is lider.targets
    with lider.watch():
        model(images())
    x, first, second = maps(model, images())  # a foreign network's outputs as they are: after ReLU
    pairs = ((x, first.relu()), (first.relu(), second.relu()))
    expected = torch.stack([spatial_lipschitz(a, b) for a, b in pairs]).mean()
    torch.testing.assert_close(lider.penalty(), expected)


def test_from_an_example_degenerate_stages_are_left_out_and_said(caplog):
    """ResNet18 on 8x8 digits: one channel at the start, one position at the end."""
    model, lider = resnet18(10, (1, 8, 8), width=4), LiDER()
    with caplog.at_level(logging.INFO, logger="liderlab"):
        lider.attach(model, images(2, channels=1))
    assert lider.chain == ["stem", "layer1", "layer2", "layer3"]
    assert "LiDER watches stem → layer1 → layer2 → layer3" in caplog.text
    assert len(lider.targets) == 3
    assert sum(bool(module._forward_hooks) for module in model.modules()) == 4


def test_maps_without_positions_suit_the_batch_form():
    model = MLP(10, (1, 8, 8), width=6)
    lider = LiDER(model, estimator="batch")
    lider.calibrate([images(channels=1)])
    with lider.watch():
        model(images(channels=1))
    lider.penalty().backward()
    assert model.hidden1.weight.grad.abs().sum() > 0


# What is refused, and what is said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"estimator": "spacial"}, "did you mean 'spatial'"),
        ({"reading": "sigma"}, "Allowed: singular, eigenvalue"),
        ({"weights": "released"}, "Allowed: paper, swapped"),
        ({"on": "memory"}, "Allowed: replay, stream"),
        ({"rows": "none"}, "Allowed: all, past"),
        ({"draw": "new"}, "Allowed: reuse, fresh"),
        ({"alpha": -0.1}, "alpha ≥ 0"),
        ({"beta": float("nan")}, "beta ≥ 0"),
        ({"iterations": 0}, "iterations ≥ 1"),
        ({"tol": -1.0}, "tol ≥ 0"),
        ({"alpha": float("inf")}, "alpha ≥ 0 and finite"),
        ({"iterations": 2.5}, "a whole number"),
        ({"stages": "1"}, "Expected a list of stages, .'1'., but got '1'"),
        ({"stages": []}, "Expected different stages"),
        ({"stages": ["1", "1"]}, "Expected different stages"),
        ({"stages": ["input", "1"]}, "beside 'input'"),
        ({"stages": ["1"], "from_input": False}, "two maps or more"),
        ({"stages": ["1", "9"]}, "but got '9'; it has 0, 1, 2"),
    ],
)
def test_bad_arguments_are_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        LiDER(network(), **arguments)


def calibrate(lider: LiDER, model: nn.Module, x: Tensor) -> None:
    lider.calibrate([x])


def watch(lider: LiDER, model: nn.Module, x: Tensor) -> None:
    with lider.watch():
        model(x)


def attach(lider: LiDER, model: nn.Module, x: Tensor) -> None:
    lider.attach(model, x)


@pytest.mark.parametrize("meet", [calibrate, watch, attach])
@pytest.mark.parametrize(
    ("stages", "size", "says"),
    [
        (["3", "5"], 2, "'3' and '5' have one position each.*estimator=\"batch\""),
        (["1", "6"], 8, "'6' gives .n, 12.: choose other stages, or estimator=\"batch\""),
        (["3", "1"], 8, "running order"),
    ],
)
def test_set_ups_that_are_degenerate_for_every_batch_are_refused(stages, size, says, meet):
    model = network()
    lider = LiDER(model, stages)
    for _ in range(2):  # and refused again
        with pytest.raises(ValueError, match=says):
            meet(lider, model, images(size=size))
    assert lider.terms() == {}


def test_the_batch_form_takes_what_the_spatial_form_refuses():
    model = network()
    lider = LiDER(model, ["1", "6"], estimator="batch")
    watch(lider, model, images())
    assert lider.penalty() > 0
    with pytest.raises(ValueError, match="running order"):
        watch(LiDER(model, ["3", "1"], estimator="batch"), model, images())


@pytest.mark.parametrize("meet", [calibrate, watch, attach])
@pytest.mark.parametrize(
    ("stages", "channels", "says"),
    [
        (["1", "3", "5"], 3, "no gradient reaches 5 through its own λ"),
        (["1", "3"], 1, "λ between input and 1 has no gradient.*or from_input=False"),
    ],
)
def test_lambdas_without_gradient_are_said_once(stages, channels, says, meet, caplog):
    model = network(channels=channels)
    lider = LiDER(model, stages)
    meet(lider, model, images(channels=channels))
    watch(lider, model, images(channels=channels))
    assert len(caplog.records) == 1
    assert re.search(says, caplog.text)


def test_networks_without_maps_are_refused():
    flat = nn.Sequential(nn.Flatten(), nn.Linear(192, 5))
    with pytest.raises(ValueError, match="Found no feature maps"):
        LiDER(flat).calibrate([images()])
    with pytest.raises(ValueError, match="fewer than two maps"):
        LiDER().attach(ConvNet(5, (3, 1, 1), width=4), images(size=1))


def test_calibrating_with_nothing_is_refused():
    model = network()
    with pytest.raises(ValueError, match="at least 1 samples"):
        LiDER(model, STAGES).calibrate([])
    with pytest.raises(ValueError, match="at least 2 samples"):
        LiDER(model, STAGES, estimator="batch").calibrate([images(1)])
    with pytest.raises(RuntimeError, match=r"LiDER\(model\), or attach\(model\)"):
        LiDER().calibrate([images()])


def test_an_empty_watch_is_refused():
    lider = LiDER(network(), STAGES)
    with pytest.raises(RuntimeError, match="Nothing was heard"), lider.watch():
        pass


def test_watch_does_not_nest():
    model = network()
    lider = LiDER(model, STAGES)
    with pytest.raises(RuntimeError, match="does not nest"), lider.watch():
        lider.calibrate([images()])
    watch(lider, model, images())


# In the lab


def lab_batch(slots: list[int], tasks: list[int]) -> SimpleNamespace:
    slot = torch.tensor(slots)
    return SimpleNamespace(replayed=slot >= 0, task=torch.tensor(tasks), origin="both")


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, [1, 2]),
        ({"rows": "past"}, [1]),
        ({"on": "stream"}, [0, 3]),
        ({"on": "stream", "rows": "past"}, []),
        ({"draw": "fresh"}, []),
        ({"alpha": 0.0, "beta": 0.0}, []),
    ],
)
def test_hears_the_rows_it_is_told_to(options, rows):
    model = network().eval()
    lider = LiDER(model, STAGES, **{"alpha": 0.2, "beta": 0.7, **options})
    lider.calibrate([images(8, seed=1)])
    step = SimpleNamespace(task=SimpleNamespace(index=1), team=Team())
    with lider.hear(lab_batch([-1, 4, 0, -1], [1, 0, 1, 1]), step):
        model(images())
    terms = lider.losses(step) if options.get("draw") != "fresh" else {}
    if not rows:
        assert terms == {}
        assert isinstance(lider.hear(lab_batch([-1], [1]), step), nullcontext)
        return
    λ = by_hand(model, images())[rows]
    per_row = {
        "lider/c_lip": 0.2 * (λ - lider.targets).abs().mean(1),
        "lider/0_lip": 0.7 * λ.mean(1),
    }
    torch.testing.assert_close(terms, per_row)
    assert lider.losses(step) == {}  # paid once


def test_terms_of_several_passes_average_them():
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.2, beta=0.7)
    lider.calibrate([images(8, seed=1)])
    for n in (5, 2):
        watch(lider, model, images(n, seed=n))
    expected = lider.terms()
    per_row = lider.losses(SimpleNamespace())
    assert all(term.shape == (7,) for term in per_row.values())
    torch.testing.assert_close(
        {name: per_row[f"lider/{name}"].mean() for name in expected}, expected
    )


def test_readings_name_lambda_and_target_of_every_stage():
    model = network().eval()
    lider = LiDER(model, STAGES)
    lider.calibrate([images(8, seed=1)])
    watch(lider, model, images())
    λ = by_hand(model, images()).mean(0)
    assert lider.readings() == pytest.approx(
        {
            "lider/λ/1": λ[0].item(),
            "lider/c/1": lider.targets[0].item(),
            "lider/λ/3": λ[1].item(),
            "lider/c/3": lider.targets[1].item(),
        }
    )
    assert LiDER(model, STAGES, alpha=0.0, beta=0.0).readings() == {}


@pytest.mark.parametrize("draw", ["reuse", "fresh"])
def test_a_run_learns_the_targets(build, draw):
    loop = build("er", {"lider": {"alpha": 0.5, "beta": 0.1, "draw": draw}})
    (lider,), events = loop.regularizers, iter(loop)
    assert "lider/c_lip" not in next(events).terms  # the memory is empty
    assert lider.calibrated
    start = lider.targets.detach().clone()
    assert {"lider/c_lip", "lider/0_lip"} <= set(next(events).terms)
    assert not torch.equal(lider.targets, start)


@pytest.mark.parametrize("changed", [{"on": "stream"}, {"rows": "past"}])
def test_fresh_draws_hear_all_of_the_memory_or_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="draw='fresh' draws from the memory"):
        LiDER(draw="fresh", **changed)


def test_a_state_for_unknown_stages_is_one_sentence() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2))
    saved = LiDER(model)
    saved.calibrate([torch.rand(4, 3, 8, 8)])
    for holder in (LiDER(model), nn.ModuleList([LiDER(model)])):
        inside = isinstance(holder, nn.ModuleList)
        state = {f"0.{k}" if inside else k: v for k, v in saved.state_dict().items()}
        with pytest.raises(UserError, match="know the stages before a state is loaded"):
            holder.load_state_dict(state)
    known = LiDER()
    known.attach(model, torch.rand(2, 3, 8, 8))
    known.load_state_dict(saved.state_dict())
    assert torch.equal(known.targets, saved.targets)


def test_only_the_host_looks_whether_the_iteration_may_end(monkeypatch) -> None:
    """Elsewhere every look would wait for the device."""
    seen: list[float] = []

    def estimate(before: Tensor, after: Tensor, *, tol: float, **_: Any) -> Tensor:
        seen.append(tol)
        return torch.zeros(len(before))

    monkeypatch.setitem(lider_module.ESTIMATORS, "spatial", estimate)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2))
    made = LiDER(model, stages=["0", "2"], tol=1e-3)
    for device, expected in (("cpu", 1e-3), ("meta", 0.0)):
        maps = {name: torch.zeros(2, 3, 8, 8, device=device) for name in made.chain}
        made._estimate(maps)
        assert seen == [expected] * 2
        seen.clear()
