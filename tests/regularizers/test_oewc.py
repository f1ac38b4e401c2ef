"""oEWC against a loop over rows, its recursion, and the closed form of its penalty."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.errors import RunFailed
from liderlab.regularizers.consolidation import TaskRows, flat, warn_if_stiff
from liderlab.regularizers.oewc import OEWC
from liderlab.training.events import StepDone
from liderlab.training.loop import Loop
from liderlab.training.step import Step
from liderlab.types import Fit, Recipe

Build = Callable[..., Loop]


def step_of(loop: Loop, task: int) -> Step:
    """The step that a regulariser gets at the end of a task."""
    now = loop.stream.tasks[task]
    return loop._step(now, Fit(now.train, 1, Recipe(0.1)), 1)


def scramble(network: nn.Module, seed: int = 0) -> None:
    """Weights and BatchNorm statistics away from where they start."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            noise = 0.1 * torch.randn(tensor.shape, generator=generator)
            tensor.add_(noise.abs() if "var" in name else noise)


def fisher_by_loop(step: Step) -> Tensor:
    """Mean squared gradients of log p(y|x), row by row, p over the classes seen."""
    network, data = step.network.eval(), step.task.train
    parameters = list(network.parameters())
    total = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float64)
    for i in range(len(data)):
        batch = step.batch(data.rows(torch.tensor([i])), None)
        log_p = network(batch.x)[0, : step.seen].log_softmax(0)
        gradient = torch.autograd.grad(log_p[batch.y[0]], parameters)
        total += torch.cat([g.flatten() for g in gradient]).double().square()
    return total / len(data)


def test_importance_is_the_decayed_sum_of_the_tasks_fishers(build: Build) -> None:
    loop = build("finetune", {"oewc": {"gamma": 0.7, "fisher": "empirical"}})
    oewc, expected = loop.regularizers[0], torch.zeros(())
    for task in range(3):
        scramble(loop.network, seed=task)
        step = step_of(loop, task)
        expected = 0.7 * expected + fisher_by_loop(step)
        loop.network.train()
        oewc.end_task(step)
        torch.testing.assert_close(oewc.importance.double(), expected, rtol=1e-4, atol=1e-8)
        assert oewc.importance.max() > 1e-3
        theta = torch.cat([p.flatten() for p in loop.network.parameters()])
        assert torch.equal(oewc.mode, theta)


def test_later_classes_stay_free(build: Build) -> None:
    loop = build("finetune", {"oewc": {}})
    oewc = loop.regularizers[0]
    oewc.end_task(step_of(loop, 1))
    names = [name for name, _ in loop.network.named_parameters()]
    sizes = [p.numel() for p in loop.network.parameters()]
    head = dict(zip(names, oewc.importance.split(sizes), strict=True))["backbone.fc.weight"]
    by_class = head.reshape(6, -1).abs().sum(1)
    assert (by_class > 0).tolist() == [True] * 4 + [False] * 2


def test_end_of_task_leaves_the_network_as_it_was(
    build: Build, differences: Callable[..., list[str]]
) -> None:
    loop = build("finetune", {"oewc": {}})
    loop.network.train()
    loop.network.backbone.block1.eval()
    before = {name: value.clone() for name, value in loop.network.state_dict().items()}
    modes = [module.training for module in loop.network.modules()]
    loop.regularizers[0].end_task(step_of(loop, 0))
    assert differences(loop.network.state_dict(), before) == []
    assert [module.training for module in loop.network.modules()] == modes
    assert all(p.grad is None for p in loop.network.parameters())


def test_penalty_and_gradient_are_the_closed_form() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double()
    network[0].bias.requires_grad_(False)
    oewc = OEWC(weight=3.0)
    oewc.attach(network)
    oewc.importance.copy_(torch.rand(len(oewc.importance)))
    oewc.mode.add_(torch.randn(len(oewc.mode)))
    oewc.consolidated.fill_(True)
    oewc.loaded()
    terms = oewc.losses(SimpleNamespace(network=network))
    theta = [p for p in network.parameters() if p.requires_grad]
    moved = torch.cat([p.detach().flatten() for p in theta]) - oewc.mode
    assert list(terms) == ["oewc"]
    assert terms["oewc"].shape == ()
    torch.testing.assert_close(terms["oewc"], 1.5 * (oewc.importance * moved**2).sum())
    terms["oewc"].backward()
    gradient = torch.cat([p.grad.flatten() for p in theta])
    torch.testing.assert_close(gradient, 3.0 * oewc.importance * moved)


def test_no_term_before_a_task_is_consolidated_and_zero_at_the_mode(build: Build) -> None:
    loop = build("finetune", {"oewc": {"weight": 5.0}})
    oewc, step = loop.regularizers[0], step_of(loop, 0)
    assert oewc.losses(step) == {}
    oewc.end_task(step)
    assert oewc.losses(step)["oewc"].item() == 0


def test_zero_weight_computes_and_keeps_nothing(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = build("finetune", {"oewc": {"weight": 0.0, "samples": 3}})
    oewc, step = loop.regularizers[0], step_of(loop, 0)
    monkeypatch.setattr(loop.network, "forward", lambda x: pytest.fail("a pass was made"))
    oewc.end_task(step)
    assert oewc.losses(step) == {}
    assert list(oewc.state_dict()) == ["consolidated"]
    assert loop.generators.state_dict() == {}


def test_important_weights_move_less(build: Build) -> None:
    """With the penalty, the first task's weights move less in the directions of its Fisher."""

    def distance(weight: float) -> float:
        loop = build("finetune", {"oewc": {"weight": weight}})
        oewc, far = loop.regularizers[0], 0.0
        for event in loop:
            if isinstance(event, StepDone) and event.task.index == 1:
                theta = torch.cat([p.detach().flatten() for p in loop.network.parameters()])
                far = (oewc.importance * (theta - oewc.mode).square()).sum().item()
            if event.task.index == 2:
                break
        return far

    assert distance(10.0) < 0.8 * distance(1e-12)


@pytest.mark.parametrize("options", [{}, {"fisher": "empirical", "samples": 10, "gamma": 0.9}])
def test_resumes_bit_for_bit(
    build: Build, differences: Callable[..., list[str]], options: dict[str, Any]
) -> None:
    whole = build("er-ace", {"oewc": options})
    list(whole)
    first = build("er-ace", {"oewc": options})
    for event in first:
        if isinstance(event, StepDone) and (event.task.index, event.batch) == (1, 1):
            break
    state = first.state_dict()
    assert state["regularizers"][0]["consolidated"]
    second = build("er-ace", {"oewc": options})
    second.load_state_dict(state)
    list(second)
    assert differences(second.state_dict(), whole.state_dict()) == []


# The rows of a task


def labels(rows: TaskRows, step: Step) -> tuple[Tensor, Tensor]:
    step.network.eval()
    batches = list(rows.batches(step))
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    return x, y


def test_all_rows_in_order_and_nothing_drawn(build: Build) -> None:
    loop = build("finetune")
    step = step_of(loop, 1)
    expected = step.batch(step.task.train.rows(torch.arange(24)), None)
    state = step.generator("oewc").get_state()
    for samples in (None, 24, 1024):
        x, y = labels(rows := TaskRows("oewc", samples, "empirical"), step)
        assert torch.equal(x, expected.x)
        assert torch.equal(y, expected.y)
        assert rows.count(step) == 24
    assert torch.equal(step.generator("oewc").get_state(), state)


def test_a_limited_number_of_rows_is_drawn_without_replacement(build: Build) -> None:
    step = step_of(build("finetune"), 1)
    x, y = labels(rows := TaskRows("oewc", 10, "empirical"), step)
    assert len(y) == rows.count(step) == 10
    assert len(x.unique(dim=0)) == 10
    again, _ = labels(rows, step)
    assert not torch.equal(x, again)  # the generator has moved on


def test_sampled_labels_are_drawn_over_the_classes_seen(build: Build) -> None:
    loop = build("finetune")
    nn.init.zeros_(loop.network.backbone.fc.weight)  # a uniform prediction
    nn.init.zeros_(loop.network.backbone.fc.bias)
    rows = TaskRows("oewc", None, "sampled")
    y = torch.cat([labels(rows, step_of(loop, 1))[1] for _ in range(10)])
    counts = torch.bincount(y, minlength=4)
    assert len(counts) == 4  # the last two classes have not been seen
    assert (counts > 30).all()  # of 240; true labels are the third and fourth class only


# Failures


def test_a_penalty_too_stiff_for_the_learning_rate_is_warned_about(
    build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    loop = build("finetune", {"oewc": {"weight": 1e6}})
    loop.regularizers[0].start(step_of(loop, 0))
    loop.regularizers[0].end_task(step_of(loop, 0))
    assert caplog.text == ""
    loop.regularizers[0].start(step_of(loop, 1))
    largest = loop.regularizers[0].importance.max().item()
    assert f"a weight below {2 / (0.1 * largest):.2g} would be safe" in caplog.text
    caplog.clear()
    loop = build("finetune", {"oewc": {"weight": 1e-3}})
    loop.regularizers[0].end_task(step_of(loop, 0))
    loop.regularizers[0].start(step_of(loop, 1))
    assert caplog.text == ""
    loop.regularizers[0].importance.mul_(1e9)  # it is the product that counts
    loop.regularizers[0].start(step_of(loop, 1))
    assert "would be safe" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": -1.0}, "weight ≥ 0"),
        ({"gamma": 1.5}, "gamma ≥ 0 and ≤ 1"),
        ({"samples": 0}, "samples ≥ 1"),
        ({"fisher": "true"}, "Allowed: empirical, sampled"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OEWC(**options)


@pytest.mark.parametrize("name", ["oewc", "olap"])
def test_a_network_that_has_diverged_is_one_sentence(name: str, build) -> None:
    loop = build("er", {name: {}}, epochs=1)
    for parameter in loop.network.parameters():
        parameter.data.fill_(torch.inf)
    loop._learner.step = lambda terms, *_: terms  # nothing stops it before the task ends
    with pytest.raises(RunFailed, match=f"after task 1 .* not finite, and {name} cannot"):
        for _ in loop:
            pass


@pytest.mark.parametrize(("factor", "warned"), [(0.99, False), (1.01, True)])
def test_momentum_widens_the_stable_range(
    factor: float, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Heavy-ball steps θ ← θ − lr·h·θ + μ·(θ − θ_before) diverge from h = 2(1 + μ)/lr on."""
    lr, momentum = 0.1, 0.9
    curvature = factor * 2 * (1 + momentum) / lr
    theta = before = 1.0
    for _ in range(3000):
        theta, before = theta - lr * curvature * theta + momentum * (theta - before), theta
    assert (abs(theta) > 1e3) == warned
    warn_if_stiff("oewc", 0.5, 2 * curvature, Recipe(lr, momentum=momentum))
    assert ("would be safe" in caplog.text) == warned


def test_no_tensors_are_a_vector_of_no_numbers() -> None:
    assert flat([]).shape == (0,)
    assert flat([torch.ones(2, 2), torch.zeros(1)]).tolist() == [1, 1, 1, 1, 0]
