"""MRFA: the moved features against a plain computation, its rows, its side effects."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from liderlab.backbones.convnet import ConvNet
from liderlab.regularizers.mrfa import MRFA
from liderlab.training.loop import Loop, StepDone
from liderlab.training.step import Step
from liderlab.types import Batch

Build = Callable[..., Loop]
STAGES = ("block1", "block2", "block3", "block4")


def prepared(
    build: Build, method: str = "er", rows: int = 8, **options: Any
) -> tuple[Loop, Step, Batch]:
    """A loop in float64 in its second task, a step of it and a draw of the memory."""
    loop = build(method, {"mrfa": options})
    events = iter(loop)
    while loop.cursor.task == 0:
        next(events)
    loop.network.double().train()
    task = loop.stream.tasks[1]
    step = loop._step(task, loop._plan(task)[0], 0)
    batch = step.take(step.memory, torch.arange(rows), None)
    return loop, step, batch.replace(x=batch.x.double())


def passed(net: nn.Module, x: Tensor, add: dict[str, Tensor], seen: dict[str, Tensor]) -> Tensor:
    """The ConvNet written out; adds to its maps, and notes them."""
    for name in STAGES:
        x = net.get_submodule(name)(x)
        seen[name] = x
        x = (x + add.get(name, 0.0)).relu()
    return net.fc(x.mean((2, 3)))  # type: ignore[operator]


@pytest.mark.parametrize("rows", [8, 1])
def test_logits_and_gradients_are_those_of_a_plain_computation(build: Build, rows: int) -> None:
    """Stage by stage of the same draws; the statistics are those that the moved pass leaves."""
    loop, step, batch = prepared(build, strength=0.3, rows=rows)
    drawn = torch.Generator()
    drawn.set_state(step.generator("mrfa").get_state())
    twin = deepcopy(loop.network.backbone)
    logits = step.net(batch)
    ours = torch.autograd.grad(logits.sum(), list(loop.network.parameters()))

    where = torch.randint(4, (rows,), generator=drawn)
    share = 0.3 * torch.rand(rows, generator=drawn)
    zeros = {name: torch.zeros(1, dtype=torch.float64, requires_grad=True) for name in STAGES}
    maps: dict[str, Tensor] = {}
    twin.eval()
    loss = F.cross_entropy(passed(twin, batch.x, zeros, maps)[:, : step.seen], batch.y)
    slopes = dict(zip(STAGES, torch.autograd.grad(loss, list(maps.values())), strict=True))
    twin.train()
    buffers = {n: b.clone() for n, b in twin.named_buffers()}
    add: dict[str, Tensor] = {}
    for k, name in enumerate(STAGES):  # each map depends on the moves before it
        with torch.no_grad():
            passed(twin, batch.x, add, maps)
            twin.load_state_dict(buffers, strict=False)
        size = maps[name].square().sum((1, 2, 3))
        factor = share.double() * (where == k) * size
        add[name] = factor[:, None, None, None] * slopes[name]
    truth = passed(twin, batch.x, add, maps)
    torch.testing.assert_close(logits, truth)
    theirs = torch.autograd.grad(truth.sum(), list(twin.parameters()))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)
    for (name, a), b in zip(loop.network.backbone.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(a, b, msg=name)
    assert {name for name in STAGES if add[name].any()} == {STAGES[k] for k in where.tolist()}


def test_the_loss_rises_along_the_move(build: Build) -> None:
    loop, step, batch = prepared(build, strength=1e-3)
    with torch.no_grad():
        loop.network.eval()  # so that both passes have the same statistics
        plain = F.cross_entropy(step.probe(batch.x), batch.y)
        moved = F.cross_entropy(step.net(batch), batch.y)
    assert moved > plain


def test_rows_of_the_stream_stay(build: Build) -> None:
    """In a mixed batch the replayed rows alone move; a pass of the stream draws nothing."""
    loop, step, _ = prepared(build, "icarl", strength=1.0)
    fit, task = step.fit, step.task
    mixed = step.take(fit.data, torch.arange(len(task.train) - 6, len(task.train) + 6), None)
    assert mixed.origin == "both"
    mixed = mixed.replace(x=mixed.x.double())
    loop.network.eval()
    rows = mixed.replayed
    difference = (step.net(mixed) - step.probe(mixed.x)).abs().amax(1)
    assert (difference[rows] > 0).all()
    assert (difference[~rows] == 0).all()
    stream = step.take(task.train, torch.arange(8), None)
    state = step.generator("mrfa").get_state()
    loop.network.float()
    assert torch.equal(step.net(stream), step.probe(stream.x))
    none = replace(step.take(fit.data, torch.arange(6), None), origin="both")  # on several ranks
    assert not none.replayed.any()
    assert torch.equal(step.net(none), step.probe(none.x))
    assert torch.equal(step.generator("mrfa").get_state(), state)


def test_another_regulariser_hears_one_pass(build: Build) -> None:
    """The pass that takes the gradient is not LiDER's: it watches each replay pass once."""
    loop = build("er", {"lider": {}, "mrfa": {}})
    lider = loop.regularizers[0]
    counts = []
    losses = lider.losses

    def counted(step: Step) -> Any:
        counts.append(len(lider._watched))  # type: ignore[arg-type]
        return losses(step)

    lider.losses = counted  # type: ignore[method-assign]
    assert all(loop)
    assert set(counts) == {0, 1}


def test_copies_of_the_network_do_not_move(build: Build) -> None:
    loop, step, batch = prepared(build, strength=1.0)
    copy = deepcopy(loop.network)
    step.net(batch)
    with loop.regularizers[0]._doing("moving"):  # type: ignore[operator]
        assert torch.equal(copy(batch.x), deepcopy(copy)(batch.x))


def test_a_compiled_step_is_the_plain_step(build: Build) -> None:
    import torch._dynamo as dynamo

    dynamo.reset()
    plain, compiled = (
        build("er", {"mrfa": {"strength": 0.01}}, epochs=1, compile=backend)
        for backend in (None, "eager")
    )
    for a, b in zip(plain, compiled, strict=True):
        if isinstance(a, StepDone):
            assert isinstance(b, StepDone)
            torch.testing.assert_close(a.terms, b.terms)
    dynamo.reset()


def test_a_network_without_stages_is_refused() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 4))
    with pytest.raises(ValueError, match="mrfa found no stages in this network: name modules"):
        MRFA().attach(network, torch.zeros(2, 3, 8, 8))
    MRFA(stages=["1"]).attach(network, torch.zeros(2, 3, 8, 8))
    with pytest.raises(ValueError, match="Expected stages to name modules"):
        MRFA(stages=["body"]).attach(ConvNet(4, (3, 8, 8), width=4))
