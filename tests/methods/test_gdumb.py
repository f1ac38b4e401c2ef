"""GDumb: it fills the memory, then fits a network to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from liderlab.functional.sampling import cutmix
from liderlab.methods.gdumb import GDumb, WarmRestarts
from liderlab.training.events import StepDone, TaskDone
from liderlab.training.loop import Loop

DOUBLE = torch.float64


def test_the_learning_rate_restarts_as_in_the_paper() -> None:
    """Torch's scheduler, used as the authors' public code (drimpossible/GDumb, main.py) does."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
        optimizer, T_0=1, T_mult=2, eta_min=0.0005
    )
    ours = WarmRestarts(0.0005 / 0.05)
    optimizer.step()
    for epoch in range(250):
        if epoch >= 2:
            scheduler.step()
        lr = 0.05 * 0.1 if epoch == 0 else optimizer.param_groups[0]["lr"]
        assert 0.05 * ours(epoch) == pytest.approx(lr, rel=1e-9), epoch
        assert ours(epoch + 0.7) == ours(epoch)  # constant within an epoch


def test_cutmix_takes_a_box_from_the_partner() -> None:
    x = torch.arange(6.0).reshape(6, 1, 1, 1).expand(6, 3, 9, 12)  # every image is its number
    areas = []
    for seed in range(300):
        mixed, partner, share = cutmix(x, 1.0, torch.Generator().manual_seed(seed))
        assert sorted(partner.tolist()) == list(range(6))
        from_partner = mixed == partner.reshape(-1, 1, 1, 1)
        own = mixed == x
        assert (from_partner | own).all()
        moved = partner != torch.arange(6)
        if not moved.any():
            continue
        box = ~own[moved][0, 0]
        assert (~own[moved] == box).all()  # the same box in every image and channel
        assert share == pytest.approx(1 - float(box.double().mean()))
        if box.any():
            rows, columns = box.any(1).nonzero()[:, 0], box.any(0).nonzero()[:, 0]
            whole = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
            assert int(box.sum()) == int(whole)
        areas.append(1 - share)
    assert min(areas) == 0.0
    assert max(areas) > 0.6
    assert 0.2 < sum(areas) / len(areas) < 0.5  # below E[1 − λ'] = 0.5: boxes reach outside


def test_cutmix_follows_its_alpha_and_its_generator() -> None:
    x = torch.rand(4, 1, 32, 32)
    spread = []
    for alpha in (0.1, 50.0):
        shares = [cutmix(x, alpha, torch.Generator().manual_seed(seed))[2] for seed in range(100)]
        spread.append(torch.tensor(shares).std().item())
    assert spread[0] > 2 * spread[1]  # Beta(0.1, 0.1) sits at 0 and 1, Beta(50, 50) in the middle
    again = [cutmix(x, 1.0, torch.Generator().manual_seed(5)) for _ in range(2)]
    assert torch.equal(again[0][0], again[1][0])


def test_the_loss_is_shared_between_a_row_and_its_partner(
    make_step: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four pixels, CutMix takes none; here it halves the difference to the partner."""
    generator = torch.Generator().manual_seed(0)
    train = (torch.randn(6, 4, generator=generator), torch.tensor([0, 1, 2, 0, 1, 2]))
    weight, partner, share = torch.randn(3, 4, generator=generator), [1, 2, 3, 4, 5, 0], 0.3

    def half_way(x: Tensor, alpha: float, generator: torch.Generator) -> Any:
        assert alpha == 0.7
        return (x + x[partner]) / 2, torch.tensor(partner), share

    monkeypatch.setattr("liderlab.methods.gdumb.cutmix", half_way)
    method = GDumb(cutmix_probability=1.0, cutmix_alpha=0.7)
    step, batch = make_step(method, weight, train=train, task=0, tasks=1)
    terms = method.losses(batch, step)
    logits = step.network((batch.x + batch.x[partner]) / 2)
    for i in range(6):
        log_p = logits[i] - logits[i].exp().sum().log()
        expected = -share * log_p[batch.y[i]] - (1 - share) * log_p[batch.y[partner[i]]]
        assert terms["memory"][i].item() == pytest.approx(expected.item())


def test_cutmix_takes_part_with_its_probability(make_step: Callable[..., Any]) -> None:
    train = (torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3)
    weight = torch.eye(3, 4)
    plain = []
    for probability in (0.0, 0.25):
        method = GDumb(cutmix_probability=probability)
        step, batch = make_step(method, weight, train=train, task=0, tasks=1)
        seen: list[Tensor] = []
        net, step.net = step.net, lambda b: seen.append(b.x) or net(b)  # noqa: B023
        for _ in range(400):
            method.losses(batch, step)
        plain.append(sum(x is batch.x for x in seen))
    assert plain[0] == 400
    assert abs(plain[1] - 300) < 4.9 * (400 * 0.25 * 0.75) ** 0.5  # once in 10⁶


def test_it_plans_to_collect_and_in_the_end_to_fit(build: Callable[..., Loop]) -> None:
    loop = build("gdumb", options={"fit_epochs": 3, "lr_max": 0.2, "lr_min": 0.1})
    plans = [loop._plan(task) for task in loop.stream.tasks]
    assert [[fit.name for fit in plan] for plan in plans] == [["collect"]] * 2 + [
        ["collect", "fit"]
    ]
    collect, fit = plans[-1]
    assert (collect.epochs, collect.augment, collect.restart) == (1, False, False)
    assert (fit.epochs, fit.augment, fit.restart) == (3, True, True)
    assert fit.data is loop.memory
    assert (fit.recipe.lr, fit.recipe.momentum, fit.recipe.weight_decay) == (0.2, 0.9, 1e-6)
    assert fit.recipe.schedule.lowest == 0.5
    assert fit.recipe.batch_size == loop._recipe.batch_size
    loop = build("gdumb", options={"fit_after": "task"})
    assert [len(loop._plan(task)) for task in loop.stream.tasks] == [2, 2, 2]


def test_an_optimizer_for_every_pass_as_released(build: Callable[..., Loop]) -> None:
    """The schedule of the code released with LiDER, which is made anew for every pass, is torch's
    warm restarts after at most one step: a tenth of the rate first, then all of it."""
    options = {"fit_epochs": 4, "lr_max": 0.2, "optimizer_per": "epoch", "collect": "every-epoch"}
    loop = build("gdumb", options=options, epochs=3)
    collect, *fits = loop._plan(loop.stream.tasks[-1])
    assert (collect.epochs, [fit.epochs for fit in fits]) == (3, [1] * 4)
    assert [fit.restart for fit in fits] == [True, False, False, False]
    lrs = []
    for epoch in range(4):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
            optimizer, T_0=1, T_mult=2, eta_min=0.01
        )
        optimizer.step()
        if epoch >= 2:
            scheduler.step()
        lrs.append(optimizer.param_groups[0]["lr"] * (0.1 if epoch == 0 else 1))
    assert [fit.recipe.lr * fit.recipe.schedule(0) for fit in fits] == pytest.approx(lrs)


def test_momentum_starts_anew_in_every_pass(build: Callable[..., Loop]) -> None:
    """Then a step with momentum is, in every pass, the first one: one without."""
    ends = []
    for momentum in (0.9, 0.0):
        options = {"fit_epochs": 3, "optimizer_per": "epoch", "momentum": momentum}
        loop = build("gdumb", options=options, size=8)  # one step in a pass
        steps = [e for e in loop if isinstance(e, StepDone) and e.fit.name == "fit"]
        assert len(steps) == 3
        ends.append(loop.network.state_dict())
    assert all(torch.equal(value, ends[1][name]) for name, value in ends[0].items())


def test_every_epoch_offers_the_samples_again(build: Callable[..., Loop]) -> None:
    loop = build("gdumb", options={"fit_epochs": 1, "collect": "every-epoch"}, epochs=3)
    for _ in loop:
        pass
    assert loop.memory.seen == 3 * sum(len(task.train) for task in loop.stream.tasks)


def run_until_fit(loop: Loop) -> list[StepDone]:
    collected = []
    for event in loop:
        if isinstance(event, StepDone):
            if event.fit.name == "fit":
                return collected
            collected.append(event)
    raise AssertionError("it never fits")


@pytest.mark.parametrize("draw", ["reuse", "fresh"])
def test_collecting_trains_nothing(draw: str, build: Callable[..., Loop]) -> None:
    """Not even a regulariser that draws for itself."""
    loop = build("gdumb", {"lider": {"draw": draw}}, options={"fit_epochs": 1})
    start = {name: value.clone() for name, value in loop.network.state_dict().items()}
    iterator = iter(loop)
    for event in iterator:
        if isinstance(event, TaskDone) and event.task.index == 1:
            break
        if isinstance(event, StepDone):
            assert event.terms == {}
    assert all(torch.equal(value, start[name]) for name, value in loop.network.state_dict().items())
    assert loop.evaluation.class_incremental.isnan().all()  # nothing to evaluate yet
    fitted = [
        event for event in iterator if isinstance(event, StepDone) and event.fit.name == "fit"
    ]
    assert all("lider/0_lip" in event.terms for event in fitted)
    assert loop.evaluation.class_incremental[-1].isfinite().all()


def test_every_fit_starts_from_the_initial_weights(build: Callable[..., Loop]) -> None:
    options = {"fit_after": "task", "fit_epochs": 1, "lr_max": 1e-30, "lr_min": 0.0}
    loop = build("gdumb", options=options)
    start = {name: value.clone() for name, value in loop.network.named_parameters()}
    for event in loop:
        if isinstance(event, TaskDone):
            for name, value in loop.network.named_parameters():
                torch.testing.assert_close(value, start[name])
                value.data.fill_(0.123)  # the next fit must not start from it


def test_a_sample_is_offered_once(build: Callable[..., Loop]) -> None:
    loop = build("gdumb", options={"fit_epochs": 1}, epochs=5)
    for _ in loop:
        pass
    assert loop.memory.seen == sum(len(task.train) for task in loop.stream.tasks)
    assert torch.bincount(loop.memory.data["y"]).tolist() == [3] * 6


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("fit_epochs", 0, "fit_epochs ≥ 1, but got 0"),
        ("lr_min", 1.0, "lr_min ≥ 0 and ≤ 0.05"),
        ("lr_max", 0.0, "lr_max > 0"),
        ("cutmix_probability", 1.5, "≥ 0 and ≤ 1, but got 1.5"),
        ("cutmix_alpha", 0.0, "cutmix_alpha > 0"),
        ("weight_decay", -1.0, "weight_decay ≥ 0"),
        ("fit_after", "taks", "did you mean 'task'"),
        ("optimizer_per", "epoh", "did you mean 'epoch'"),
        ("collect", "twice", "Allowed: once, every-epoch"),
        ("momentum", 1.0, "momentum ≥ 0 and < 1"),
    ],
)
def test_wrong_options_are_refused(option: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GDumb(**{option: value})
