"""Steps that look at the loss around the weights, and gradients that are changed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from liderlab.errors import UserError
from liderlab.methods import METHODS
from liderlab.regularizers.base import Regularizer
from liderlab.regularizers.lider import LiDER
from liderlab.regularizers.sam import SAM
from liderlab.training.learner import Learner, NotFinite
from liderlab.training.loop import Loop
from liderlab.types import Gradient, Recipe
from short_options import short_options


class Watcher(Regularizer):
    """Keeps the gradient of each step, and that at the same weights, evaluated again."""

    perturbs = True

    def __init__(self) -> None:
        super().__init__()
        self.first: list[Gradient] = []
        self.again: list[Gradient] = []
        self.final: list[Gradient] = []

    def perturb(self, gradient: Gradient, gradient_at: Callable[[Gradient], Gradient]) -> Gradient:
        self.first.append({name: g.clone() for name, g in gradient.items()})
        self.again.append(gradient_at({name: torch.zeros_like(g) for name, g in gradient.items()}))
        return gradient

    def transform(self, gradient: Gradient, step: Any) -> Gradient:
        self.final.append({name: g.clone() for name, g in gradient.items()})
        return gradient


@pytest.mark.parametrize(
    "method", [name for name in METHODS if METHODS.class_of(name).trains != "nothing"]
)
def test_terms_evaluated_again_give_the_same_gradient(
    method: str, build: Callable[..., Loop]
) -> None:
    loop = build(method, options=short_options(method, 1), epochs=1)
    watcher = Watcher()
    watched = build(method, options=short_options(method, 1), epochs=1, more=[watcher])
    for _ in loop:
        pass
    for _ in watched:
        pass
    assert watcher.first
    for first, again in zip(watcher.first, watcher.again, strict=True):
        for name in first:
            assert torch.equal(first[name], again[name]), name
    differing = [
        name
        for name, value in loop.network.state_dict().items()
        if not torch.equal(value, watched.network.state_dict()[name])
    ]
    assert differing == []  # weights, and BatchNorm's statistics: they moved once
    assert loop.memory.digest() == watched.memory.digest()
    plain, seen = loop.generators.state_dict(), watched.generators.state_dict()
    assert all(torch.equal(plain[name], seen[name]) for name in plain)


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64))
        self.b = nn.Parameter(torch.tensor(0.1, dtype=torch.float64))

    def loss(self) -> Tensor:
        x = torch.tensor([[1.0, 2, 3], [0, -1, 1], [2, 0, -1]], dtype=torch.float64)
        y = torch.tensor([1.0, 0, 1], dtype=torch.float64)
        logits = x @ self.w + self.b
        return nn.functional.binary_cross_entropy_with_logits(logits, y, reduction="none")


@pytest.mark.parametrize("adaptive", [False, True])
def test_sam_steps_down_the_gradient_at_the_point_uphill(adaptive: bool) -> None:
    ours, dense = Linear(), Linear()
    sam = SAM(rho=0.4, adaptive=adaptive)
    sam.attach(ours)
    learner = Learner(ours, nn.Module(), [sam])
    learner.start(Recipe(lr=0.3, weight_decay=0.01, momentum=0.9))
    optimizer = torch.optim.SGD(dense.parameters(), lr=0.3, weight_decay=0.01, momentum=0.9)
    for _ in range(3):
        learner.step({"loss": ours.loss()}, lambda: {"loss": ours.loss()}, object())  # type: ignore[arg-type]
        two_steps(dense, optimizer, 0.4, adaptive)
        assert torch.allclose(ours.w, dense.w, rtol=0, atol=1e-14)
        assert torch.allclose(ours.b, dense.b, rtol=0, atol=1e-14)


def two_steps(model: Linear, optimizer: torch.optim.Optimizer, rho: float, adaptive: bool) -> None:
    """SAM on one long vector of weights."""
    parameters = list(model.parameters())
    theta = torch.cat([p.detach().flatten() for p in parameters])
    g = torch.cat([g.flatten() for g in torch.autograd.grad(model.loss().mean(), parameters)])
    t = theta.abs() if adaptive else torch.ones_like(theta)
    epsilon = rho * t**2 * g / (t * g).norm()
    nn.utils.vector_to_parameters(theta + epsilon, parameters)
    optimizer.zero_grad()
    model.loss().mean().backward()
    nn.utils.vector_to_parameters(theta, parameters)
    optimizer.step()


def test_a_perturbed_step_climbs_over_the_regularisers_terms_too(
    build: Callable[..., Loop],
) -> None:
    plain = build("er", {"lider": {"beta": 3.0}}, epochs=1)
    flat = build("er", {"lider": {"beta": 3.0}, "sam": {"rho": 0.5}}, epochs=1)
    values = [[event.terms for event in loop if hasattr(event, "terms")] for loop in (plain, flat)]
    assert all(a.keys() == b.keys() for a, b in zip(*values, strict=True))
    assert any("lider/0_lip" in terms for terms in values[1])
    assert not torch.equal(*(flattened(loop.network) for loop in (plain, flat)))


def flattened(network: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def test_two_perturbing_regularisers_are_refused() -> None:
    with pytest.raises(UserError, match="SAM and SAM both perturb the weights"):
        Learner(Linear(), nn.Module(), [SAM(), SAM()])


@pytest.mark.parametrize("on_nonfinite", ["stop", "skip"])
def test_a_perturbed_gradient_that_is_not_finite_is_noticed(on_nonfinite: Any) -> None:
    model, sam = Linear(), SAM(rho=1.0)
    sam.attach(model)
    learner = Learner(model, nn.Module(), [sam], on_nonfinite)
    learner.start(Recipe(lr=0.1))
    before = flattened(model)

    def again() -> dict[str, Tensor]:
        return {"loss": model.loss() * torch.nan}

    if on_nonfinite == "stop":
        with pytest.raises(NotFinite, match="gradient is not finite"):
            learner.step({"loss": model.loss()}, again, object())  # type: ignore[arg-type]
    else:
        learner.step({"loss": model.loss()}, again, object())  # type: ignore[arg-type]
        assert learner.left_out
    assert torch.equal(flattened(model), before)


def test_the_loss_scale_of_half_precision_is_invisible_to_hooks() -> None:
    steps = []
    for scale in (False, True):
        model, sam = Linear(), SAM(rho=0.4)
        sam.attach(model)
        learner = Learner(model, nn.Module(), [sam], scale=scale)
        learner.start(Recipe(lr=0.3))
        learner.step({"loss": model.loss()}, lambda m=model: {"loss": m.loss()}, object())  # type: ignore[misc, arg-type]
        steps.append(flattened(model))
    assert torch.allclose(steps[0], steps[1], rtol=0, atol=1e-15)


def test_a_gem_never_steps_against_the_replay_batch(
    build: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    references: list[tuple[Gradient, Gradient]] = []

    def recording(gradient: Gradient, reference: Gradient) -> Gradient:
        references.append((gradient, reference))
        return projected(gradient, reference)

    from liderlab.functional.sharpness import product, projected

    monkeypatch.setattr("liderlab.methods.a_gem.projected", recording)
    watcher = Watcher()
    loop = build("a-gem", epochs=2, more=[watcher])
    tasks = [event.task.index for event in loop if hasattr(event, "terms")]
    later = [final for final, task in zip(watcher.final, tasks, strict=True) if task > 0]
    assert len(later) == len(references)
    violated = 0
    for (before, reference), after in zip(references, later, strict=True):
        along = product(after, reference) / product(reference, reference)
        assert along > -1e-4
        violated += bool(product(before, reference) < 0)
    assert violated > 0


def test_lider_sees_the_replay_pass_of_a_gem(build: Callable[..., Loop]) -> None:
    loop = build("a-gem", {"lider": {}}, epochs=1)
    terms = [event.terms for event in loop if hasattr(event, "terms")]
    assert any("lider/c_lip" in values for values in terms)
    assert isinstance(loop.regularizers[0], LiDER)
