"""One step, by hand, in float64."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.errors import UserError
from liderlab.regularizers.base import Regularizer
from liderlab.training.learner import Learner, NotFinite
from liderlab.types import MultiStep, Recipe


class Weights(nn.Module):
    def __init__(self, *values: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(values, dtype=torch.float64))


class Target(Regularizer):
    """A regulariser that learns something of its own."""

    def __init__(self, **group: Any) -> None:
        super().__init__()
        self.c = nn.Parameter(torch.tensor([3.0], dtype=torch.float64))
        self.group = {"params": [self.c], "weight_decay": 0.0} | group

    def param_groups(self) -> list[dict[str, Any]]:
        return [self.group]


def learner(*modules: Any, **recipe: Any) -> Learner:
    network, method, *regularizers = modules
    made = Learner(network, method, regularizers)
    made.start(Recipe(**({"lr": 0.1} | recipe)))
    return made


def test_a_groups_momentum_is_refused_where_the_optimizer_has_none() -> None:
    adam: Any = torch.optim.Adam
    with pytest.raises(UserError, match="Adam has no momentum, but a regularizer's"):
        learner(Weights(1.0), nn.Module(), Target(momentum=0.5), optimizer=adam)
    learner(Weights(1.0), nn.Module(), Target(momentum=0.5))


def test_rows_are_averaged_and_scalars_added_as_they_are() -> None:
    network, method = Weights(1.0, 2.0), Weights(5.0)
    made = learner(network, method)
    x = torch.tensor([3.0, 5.0, 10.0], dtype=torch.float64)
    values = made.step(
        {
            "rows": x * network.w[0],  # mean: 6 w₀
            "scalar": 4 * network.w[1],
            "method": method.w.sum() * 2,
        }
    )
    assert {name: value.item() for name, value in values.items()} == {
        "rows": 6.0,
        "scalar": 8.0,
        "method": 10.0,
    }
    assert not any(value.requires_grad for value in values.values())
    assert network.w.tolist() == pytest.approx([1 - 0.1 * 6, 2 - 0.1 * 4])
    assert method.w.tolist() == pytest.approx([5 - 0.1 * 2])


def test_a_term_without_rows_counts_nothing() -> None:
    network = Weights(1.0)
    values = learner(network, nn.Module()).step(
        {"some": 2 * network.w, "none": network.w[torch.zeros(0, dtype=torch.int64)]}
    )
    assert values["none"] == 0
    assert network.w.tolist() == pytest.approx([1 - 0.2])


def test_without_terms_there_is_no_step() -> None:
    network = Weights(1.0)
    made = learner(network, nn.Module(), momentum=0.9, weight_decay=0.5)
    made.step({"loss": network.w.sum()})
    before = network.w.clone()
    assert made.step({}) == {}
    assert torch.equal(network.w, before)  # neither decay nor momentum


def test_momentum_and_decay_are_sgds() -> None:
    network = Weights(1.0)
    made = learner(network, nn.Module(), momentum=0.5, weight_decay=0.2)
    w, velocity = 1.0, None
    for _ in range(4):
        made.step({"loss": 3 * network.w.square()})
        gradient = 6 * w + 0.2 * w
        velocity = gradient if velocity is None else 0.5 * velocity + gradient
        w -= 0.1 * velocity
    assert network.w.item() == pytest.approx(w)


def test_regularizers_parameters_are_stepped_in_their_own_group() -> None:
    network, target = Weights(1.0), Target()
    made = learner(network, nn.Module(), target, weight_decay=1.0)
    made.step({"loss": network.w.sum() + 2 * target.c.sum()})
    assert network.w.item() == pytest.approx(1 - 0.1 * (1 + 1.0))
    assert target.c.item() == pytest.approx(3 - 0.1 * 2)  # no decay there
    made.step({"loss": network.w.sum()})
    assert target.c.item() == pytest.approx(3 - 0.1 * 2)  # not in the loss: not moved


def test_an_idle_regularizer_leaves_the_networks_steps_as_they_are() -> None:
    one, other = Weights(1.0, -2.0), Weights(1.0, -2.0)
    alone, joined = (
        learner(one, nn.Module(), momentum=0.9),
        learner(other, nn.Module(), Target(), momentum=0.9),
    )
    for _ in range(5):
        alone.step({"loss": one.w.pow(4)})
        joined.step({"loss": other.w.pow(4)})
    assert torch.equal(one.w, other.w)


def test_parameters_that_are_frozen_stay() -> None:
    network, method = Weights(1.0), Weights(2.0)
    method.w.requires_grad_(False)
    learner(network, method, weight_decay=1.0).step({"loss": network.w.sum() * method.w.sum()})
    assert method.w.item() == 2.0


@pytest.mark.parametrize(
    ("epoch", "factor"), [(0, 1), (1.99, 1), (2, 0.1), (2.5, 0.1), (3, 0.01), (50, 0.01)]
)
def test_the_learning_rate_is_a_function_of_the_epoch(epoch: float, factor: float) -> None:
    network, target = Weights(1.0), Target()
    made = learner(network, nn.Module(), target, lr=0.2, schedule=MultiStep((2, 3), 0.1))
    made.set_epoch(epoch)
    made.step({"loss": network.w.sum() + target.c.sum()})
    assert network.w.item() == pytest.approx(1 - 0.2 * factor)
    assert target.c.item() == pytest.approx(3 - 0.2 * factor)


def test_a_group_keeps_its_rate_decay_and_momentum() -> None:
    """Against SGD by hand: g + decay · c, then momentum, then lr · schedule · lr_factor."""
    network, target = Weights(1.0), Target(lr_factor=0.25, weight_decay=0.5, momentum=0.75)
    made = learner(network, nn.Module(), target, momentum=0.5, schedule=MultiStep((1,), 0.5))
    w, c, velocity_w, velocity_c = 1.0, 3.0, 0.0, 0.0
    for epoch in range(4):
        made.set_epoch(epoch)
        made.step({"loss": network.w.square().sum() + 2 * target.c.square().sum()})
        rate = 0.1 if epoch < 1 else 0.05
        velocity_w = 0.5 * velocity_w + 2 * w
        velocity_c = 0.75 * velocity_c + 4 * c + 0.5 * c
        w, c = w - rate * velocity_w, c - rate * 0.25 * velocity_c
        assert network.w.item() == pytest.approx(w, rel=1e-12)
        assert target.c.item() == pytest.approx(c, rel=1e-12)


def test_a_groups_rate_is_part_of_the_state() -> None:
    network, target = Weights(1.0), Target(lr_factor=0.25)
    state = learner(network, nn.Module(), target).state_dict()
    assert state["param_groups"][1]["lr_factor"] == 0.25
    del state["param_groups"][1]["lr_factor"]  # as in older checkpoints
    again = learner(network, nn.Module(), target)
    again.load_state_dict(state)
    again.set_epoch(0)
    again.step({"loss": network.w.sum() + target.c.sum()})
    assert target.c.item() == pytest.approx(3 - 0.1)


@pytest.mark.parametrize(
    ("group", "says"),
    [
        ({"params": []}, "Target has a parameter group without parameters"),
        ({"lr": 0.5}, "Target has a parameter group with an lr: give lr_factor"),
    ],
)
def test_wrong_groups_are_refused_before_the_first_fit(group: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Learner(Weights(1.0), nn.Module(), [Target(**group)])


def run(made: Learner, network: Weights, steps: int) -> Tensor:
    for _ in range(steps):
        made.step({"loss": network.w.pow(4).sum()})
    return network.w.detach().clone()


def test_state_carries_the_momentum_over() -> None:
    network = Weights(1.0, 2.0)
    made = learner(network, nn.Module(), momentum=0.9, lr=0.01)
    run(made, network, 3)
    state = made.state_dict()
    other = Weights(*network.w.tolist())
    again = learner(other, nn.Module(), momentum=0.9, lr=0.01)
    again.load_state_dict(state)
    expected = run(made, network, 3)
    assert torch.equal(run(again, other, 3), expected)  # also: nothing was shared between them


def test_a_new_fit_begins_without_momentum() -> None:
    network = Weights(1.0)
    made = learner(network, nn.Module(), momentum=0.9)
    run(made, network, 3)
    made.start(Recipe(lr=0.1, momentum=0.9))
    before = network.w.item()
    made.step({"loss": network.w.sum()})
    assert network.w.item() == pytest.approx(before - 0.1)


def test_skipped_steps_are_warned_about_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    network = Weights(1.0)
    made = Learner(network, nn.Module(), [], "skip")
    made.start(Recipe(lr=0.1))
    for _ in range(9):
        made.step({"loss": network.w.sum() * float("nan")})
    assert [record.args for record in caplog.records] == [
        ("loss term 'loss'", n) for n in (1, 2, 4, 8)
    ]
    assert network.w.item() == 1.0


def test_a_step_left_out_in_float16_does_not_stop_the_next() -> None:
    network = Weights(1.0).float()
    made = Learner(network, nn.Module(), [], "skip", scale=True)
    made.start(Recipe(lr=0.1))
    made.step({"loss": network.w.sum() * float("nan")})
    assert made.left_out
    made.step({"loss": network.w.sum()})
    assert not made.left_out
    assert network.w.item() == pytest.approx(0.9)


def test_an_overscaled_step_found_by_a_later_check_does_not_stop_the_run() -> None:
    network = Weights(1.0).float()
    made = Learner(network, nn.Module(), [], scale=True, look_every=10)
    made.start(Recipe(lr=0.1))
    made.step({"loss": network.w.sum() * 1e36})  # finite, but not 65,536 times as large
    made.check()
    assert network.w.item() == 1.0
    plain = Learner(network, nn.Module(), [], look_every=10)
    plain.start(Recipe(lr=0.1))
    plain.step({"loss": network.w.sum() * float("inf")})
    with pytest.raises(NotFinite):
        plain.check()
