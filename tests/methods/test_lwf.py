"""LwF's loss against its definition, and the network that it distils."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from liderlab.functional.losses import distillation
from liderlab.training.loop import Loop, StepDone, TaskDone


def test_distillation_is_the_cross_entropy_between_softened_scores() -> None:
    z, old = torch.randn(2, 4, 5, dtype=torch.float64)
    p, target = F.softmax(z / 3, 1), F.softmax(old / 3, 1)
    by_hand = torch.tensor(
        [-sum(target[i, c] * p[i, c].log() for c in range(5)) for i in range(4)],
        dtype=torch.float64,
    )
    assert torch.allclose(distillation(z, old, 3.0), by_hand, rtol=1e-12)
    excess = distillation(z, old, 3.0) - distillation(old, old, 3.0)
    divergence = F.kl_div(p.log(), target, reduction="none").sum(1)
    assert torch.allclose(excess, divergence, rtol=1e-10)


def test_it_distils_the_network_of_the_last_task(build: Callable[..., Loop]) -> None:
    loop = build("lwf", epochs=1)
    at_end: dict[str, torch.Tensor] = {}
    for event in loop:
        if isinstance(event, TaskDone):
            at_end = {name: value.clone() for name, value in loop.network.state_dict().items()}
        elif event.task.index > 0:
            previous = loop.method.previous.state_dict()
            assert all(torch.equal(value, at_end[name]) for name, value in previous.items())
            assert set(event.terms) == {"stream", "distillation"}
        else:
            assert set(event.terms) == {"stream"}


def test_the_terms_are_those_of_the_definition(build: Callable[..., Loop]) -> None:
    loop = build("lwf", epochs=1, options={"weight": 0.7, "temperature": 2.0})
    for event in loop:  # up to the last task
        if isinstance(event, TaskDone) and event.task.index == len(loop.stream.tasks) - 2:
            break
    task, seen = loop.stream.tasks[-1], {}

    def keep(module: object, args: tuple[torch.Tensor], output: torch.Tensor) -> None:
        seen["x"], seen["logits"] = args[0], output.detach()

    handle = loop.network.register_forward_hook(keep)
    event = next(event for event in loop if isinstance(event, StepDone))
    handle.remove()
    with torch.no_grad():
        old = loop.method.previous(seen["x"])
    heads = [list(past.classes) for past in loop.stream.tasks[:-1]]
    loss = sum(distillation(seen["logits"][:, head], old[:, head], 2.0) for head in heads)
    assert torch.allclose(event.terms["distillation"], 0.7 * loss.mean(), rtol=1e-5)
    assert event.task is task


def test_without_weight_there_is_no_distillation(build: Callable[..., Loop]) -> None:
    steps = [e for e in build("lwf", epochs=1, options={"weight": 0.0}) if isinstance(e, StepDone)]
    assert {frozenset(step.terms) for step in steps} == {frozenset({"stream"})}
