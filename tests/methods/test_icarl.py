"""iCaRL: targets, exemplars and the nearest-mean rule, by hand and against the released code."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from liderlab.functional.losses import binary_cross_entropy, incremental_targets
from liderlab.memory.policies import Herding
from liderlab.methods.icarl import ICaRL
from liderlab.methods.nearest_mean import NearestMean
from liderlab.training.events import TaskDone
from liderlab.training.loop import Loop

DOUBLE = torch.float64

# A linear network with three features and six classes in three tasks. The values called released
# were made by running `ICarl.get_loss`, `icarl_fill_buffer` and `ICarl.forward` of the LiDER
# authors' public code (models/icarl.py) on just these numbers; that code takes features as they
# are, so normalize=False here.
FEATURES = torch.tensor(
    [[1.5, -0.25, -2.125, 0.625], [-1.125, -1.375, 0.375, 0.875], [-0.75, -0.375, -0.625, 0.125]]
)
WEIGHT = torch.tensor(
    [
        [0.5, -0.125, 0.625],
        [0.25, -0.125, -0.625],
        [1.0, 0.5, -0.625],
        [0.875, -1.25, 0.0],
        [-0.5, -0.25, -1.625],
        [1.75, -0.5, 0.75],
    ]
)
PREVIOUS = torch.tensor(
    [
        [-0.625, -0.5, -1.125],
        [-0.375, -1.125, -0.125],
        [-0.125, 0.625, -0.875],
        [0.0, -0.75, 0.125],
        [0.625, 0.625, -0.25],
        [2.25, -1.875, 0.0],
    ]
)
X = torch.tensor(
    [
        [2.0, 0.75, 0.0, -0.375],
        [1.625, -1.375, 0.375, 0.5],
        [-0.375, -1.25, 0.125, 0.5],
        [0.25, 0.125, 0.375, 0.5],
    ]
)
Y = torch.tensor([2, 0, 3, 1])
TASK = (  # nine samples of the second task
    torch.tensor(
        [
            [-0.75, -1.25, -0.75, -1.25],
            [-0.25, -2.375, -0.125, 0.0],
            [0.75, -0.125, -0.375, -1.25],
            [-0.625, -0.5, 1.875, -0.375],
            [0.125, -0.625, 0.625, -0.75],
            [-0.25, 0.125, 0.25, 1.125],
            [0.25, 0.375, -0.25, -0.125],
            [0.25, -0.75, -1.875, 0.125],
            [-0.75, 0.375, 0.125, 0.375],
        ]
    ),
    torch.tensor([2, 3, 2, 3, 2, 2, 3, 2, 3]),
)


def step_of(make_step: Callable[..., Any], method: ICaRL, **how: Any) -> Any:
    how = {"train": (X, Y), "features": FEATURES, "policy": Herding()} | how
    step, batch = make_step(method, WEIGHT, **how)
    method.previous.backbone.fc.data.copy_(PREVIOUS)
    return step, batch


def test_targets_are_labels_for_new_classes_and_old_scores_for_old_ones() -> None:
    y, old = torch.tensor([0, 2, 3, 1]), torch.rand(4, 2, dtype=DOUBLE)
    targets = incremental_targets(y, 4, old)
    assert torch.equal(targets[:, :2], old)
    assert targets[:, 2:].tolist() == [[0, 0], [1, 0], [0, 1], [0, 0]]


def test_binary_cross_entropy_is_the_mean_over_classes() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(5, 4, dtype=DOUBLE, generator=generator)
    targets = torch.rand(5, 4, dtype=DOUBLE, generator=generator)
    for row, (z, t) in enumerate(zip(logits.tolist(), targets.tolist(), strict=True)):
        p = [1 / (1 + math.exp(-v)) for v in z]
        total = sum(-a * math.log(b) - (1 - a) * math.log(1 - b) for a, b in zip(t, p, strict=True))
        assert binary_cross_entropy(logits, targets)[row].item() == pytest.approx(total / 4)


def test_loss_and_gradient_are_the_released_ones(make_step: Callable[..., Any]) -> None:
    method = ICaRL(l2=0.01)
    step, batch = step_of(make_step, method)
    terms = method.losses(batch, step)
    assert terms["l2"].dim() == 0
    loss = terms["bce"].mean() + terms["l2"]
    assert loss.item() == pytest.approx(1.6612053, abs=1e-6)  # released
    (gradient,) = torch.autograd.grad(loss, step.network.backbone.fc)
    released = torch.tensor(
        [
            [0.009712, 0.130807, 0.048138],
            [0.070657, 0.075502, -0.025585],
            [0.123939, 0.189414, -0.033959],
            [0.297525, -0.375186, -0.211675],
            [-0.01, -0.005, -0.0325],  # classes to come feel the decay alone
            [0.035, -0.01, 0.015],
        ]
    )
    torch.testing.assert_close(gradient.float(), released, atol=2e-6, rtol=0)


def test_the_first_task_has_labels_only(make_step: Callable[..., Any]) -> None:
    method = ICaRL(l2=0.0)
    step, batch = step_of(make_step, method, train=(X, Y % 2), task=0)
    method.previous = None  # there is no old class to ask it for
    terms = method.losses(batch, step)
    assert set(terms) == {"bce"}
    assert terms["bce"].mean().item() == pytest.approx(0.9533733, abs=1e-6)  # released


def test_exemplars_are_herded_as_released(make_step: Callable[..., Any]) -> None:
    method = ICaRL(normalize=False)
    step, _ = step_of(make_step, method, train=TASK, size=11)  # ⌊11 / 4⌋ = 2 of each class
    method.end_task(step)
    stored = step.memory.rows(torch.arange(len(step.memory)))
    assert stored["y"].tolist() == [2, 2, 3, 3]
    released = TASK[0][[5, 2, 8, 1]]
    assert torch.equal(stored["x"].flatten(1), released.double())


def test_past_classes_lose_the_tail_of_their_order(make_step: Callable[..., Any]) -> None:
    memory = {"x": torch.arange(28.0).reshape(7, 4), "y": torch.tensor([0, 0, 0, 0, 1, 1, 1])}
    method = ICaRL()
    step, _ = step_of(make_step, method, train=TASK, memory=memory, size=8)
    method.end_task(step)
    stored = step.memory.rows(torch.arange(len(step.memory)))
    assert stored["y"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert stored["task"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert torch.equal(stored["x"].flatten(1)[:4], memory["x"][[0, 1, 4, 5]].double())


def means_by_hand(features: Tensor, y: Tensor, normalize: bool) -> dict[int, Tensor]:
    if normalize:
        features = torch.stack([f / math.sqrt(sum(v * v for v in f.tolist())) for f in features])
    means = {
        c: sum(f for f, label in zip(features, y, strict=True) if label == c)
        for c in set(y.tolist())
    }
    means = {c: total / y.tolist().count(c) for c, total in means.items()}
    return {
        c: mean / mean.square().sum().sqrt() if normalize else mean for c, mean in means.items()
    }


@pytest.mark.parametrize("normalize", [True, False])
def test_scores_are_distances_to_the_exemplars_mean(
    normalize: bool, make_step: Callable[..., Any]
) -> None:
    method = ICaRL(normalize=normalize)
    step, batch = step_of(make_step, method, train=TASK, size=11)
    method.end_task(step)
    stored = step.memory.rows(torch.arange(len(step.memory)))
    means = means_by_hand(stored["x"].flatten(1) @ FEATURES.double().T, stored["y"], normalize)
    scores = method.classifier(step.network)(batch.x)
    assert (scores[:, [0, 1, 4, 5]] == -torch.inf).all()  # not seen yet
    for row, x in enumerate(TASK[0].double()):
        feature = FEATURES.double() @ x
        feature = feature / feature.norm() if normalize else feature
        for c, mean in means.items():
            assert scores[row, c].item() == pytest.approx(
                -float((feature - mean).norm()), abs=1e-12
            )


def test_scores_rank_as_the_released_ones(make_step: Callable[..., Any]) -> None:
    method = ICaRL(normalize=False)
    step, _ = step_of(make_step, method, train=TASK, size=11)
    method.end_task(step)
    scores = method.classifier(step.network)(X.double().reshape(-1, 1, 2, 2))[:, 2:4]
    released = torch.tensor(  # minus the squared distance
        [
            [-17.80712891, -48.15008545],
            [-4.85864258, -12.03240967],
            [-10.15112305, -0.30780029],
            [-0.66845703, -5.35711670],
        ]
    )
    torch.testing.assert_close(-scores.square().float(), released, atol=1e-5, rtol=0)


def test_two_means_that_nearly_agree_are_told_apart() -> None:
    class Same(torch.nn.Module):
        def features(self, x: Tensor) -> Tensor:
            return x

    means = torch.cat([torch.ones(1, 64), torch.ones(1, 64) + 1e-4])
    rule = NearestMean(Same(), means, torch.tensor([True, True]), normalize=False)  # type: ignore[arg-type]
    x = means.repeat(20, 1)
    assert rule(x).argmax(1).tolist() == [0, 1] * 20


def test_scores_in_an_export_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters have no cdist."""

    class Same(torch.nn.Module):
        def features(self, x: Tensor) -> Tensor:
            return x

    means, x = torch.randn(2, 3, 5, dtype=torch.float64)
    rule = NearestMean(Same(), means, torch.tensor([True, False, True]), normalize=True)  # type: ignore[arg-type]
    plain = rule(x)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(rule(x), plain)


def test_distillation_is_from_the_network_of_the_last_tasks_end(build: Callable[..., Loop]) -> None:
    loop = build("icarl")
    for event in loop:
        if isinstance(event, TaskDone):
            break
    kept, now = loop.method.previous.state_dict(), loop.network.state_dict()
    assert all(torch.equal(kept[name], now[name]) for name in now)
    assert not any(p.requires_grad for p in loop.method.previous.parameters())
    assert not any(module.training for module in loop.method.previous.modules())
    before = {name: value.clone() for name, value in kept.items()}
    next(iter(loop))  # the network moves on, the copy stays
    after, now = loop.method.previous.state_dict(), loop.network.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert not torch.equal(after["backbone.fc.weight"], now["backbone.fc.weight"])


def test_its_state_is_restored_in_a_new_run(build: Callable[..., Loop]) -> None:
    loop = build("icarl")
    for _ in loop:
        pass
    file = io.BytesIO()
    torch.save(loop.state_dict(), file)
    file.seek(0)
    again = build("icarl", seed=1)
    again.load_state_dict(torch.load(file, weights_only=True))
    x = torch.rand(5, 3, 8, 8)
    scores = [each.method.classifier(each.network).eval()(x) for each in (loop, again)]
    assert torch.equal(*scores)
    assert torch.equal(again.method.previous(x), loop.method.previous(x))


def test_exemplars_in_a_batch_say_that_they_are_replayed(build: Callable[..., Loop]) -> None:
    loop = build("icarl")
    for event in loop:
        if isinstance(event, TaskDone) and event.task.index == 0:
            break
    task, size = loop.stream.tasks[1], len(loop.memory)
    (fit,) = loop.method.plan(task, loop.stream, loop._recipe, 1, loop.memory)
    assert len(fit.data) == len(task.train) + size
    rows = fit.data.rows(torch.arange(len(fit.data)))
    assert rows["slot"].tolist() == [-1] * len(task.train) + list(range(size))


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="l2 ≥ 0, but got -1"):
        ICaRL(l2=-1)


def test_a_memory_smaller_than_the_number_of_classes_is_refused(build: Callable[..., Loop]) -> None:
    with pytest.raises(ValueError, match="there are 6: a buffer of that size or more, not 5"):
        next(iter(build("icarl", size=5)))
    next(iter(build("icarl", size=6)))


def test_a_class_that_lost_its_exemplars_is_not_predicted(make_step: Callable[..., Any]) -> None:
    method = ICaRL()
    step, batch = step_of(make_step, method, train=TASK, size=8)
    method.end_task(step)
    assert method.known.tolist() == [False, False, True, True, False, False]
    labels = step.memory.data["y"]
    labels[labels == 3] = 2  # as poisoning may do
    method._take_means(step)
    assert method.known.tolist() == [False, False, True, False, False, False]
    assert (method.classifier(step.network)(batch.x).argmax(1) == 2).all()
