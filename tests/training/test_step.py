"""Step: passes, draws, deferred work, and probes that leave no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.func import functional_call

from liderlab.functional.losses import cross_entropy
from liderlab.streams.splitting import SplitStream
from liderlab.training.deferred import Deferred
from liderlab.training.loop import Loop
from liderlab.training.step import Step
from liderlab.types import Batch, Fit, Recipe

Build = Callable[..., Loop]


@pytest.fixture
def loop(build: Build) -> Loop:
    """A loop whose memory holds the second task's 24 samples."""
    loop = build("der++", size=40)
    rows = loop.stream.tasks[1].train.rows(torch.arange(24))
    loop.memory.offer(loop.generators("memory"), **rows, logits=torch.ones(24, 6))
    return loop


def step_of(loop: Loop, *, task: int = 1, epoch: float = 0, **how: Any) -> Step:
    now = loop.stream.tasks[task]
    return Step(
        task=now,
        fit=Fit(now.train, 2, Recipe(lr=0.1, replay_size=8, schedule=lambda epoch: 1 - epoch / 4)),
        epoch=epoch,
        stream=loop.stream,
        network=loop.network,
        memory=loop.memory,
        regularizers=loop.regularizers,
        generators=loop.generators,
        device=torch.device("cpu"),
        **how,
    )


def stream_batch(step: Step, n: int = 8) -> Batch:
    return step.batch(step.task.train.rows(torch.arange(n)), step.generator("augment"))


def buffers(loop: Loop) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in loop.network.named_buffers()}


def test_a_step_knows_its_epoch_learning_rate_and_classes(loop: Loop) -> None:
    step = step_of(loop, epoch=1.5)
    assert (step.seen, step.epoch, step.task_of.tolist()) == (4, 1, [0, 0, 1, 1, 2, 2])
    assert step.lr == pytest.approx(0.1 * (1 - 1.5 / 4))


def test_a_draw_says_where_its_rows_come_from(loop: Loop) -> None:
    step = step_of(loop)
    batch = step.draw()
    assert len(batch) == 8
    assert batch.replayed.all()
    stored = loop.memory.rows(batch.slot)
    assert torch.equal(batch.raw, stored["x"])
    assert torch.equal(batch.y, stored["y"])
    assert torch.equal(batch.task, stored["task"])
    assert torch.equal(batch.columns["logits"], stored["logits"])
    assert torch.equal(batch.x, batch.view(batch.raw))
    assert not torch.equal(batch.x, loop.stream.transform.sample(8, None)(batch.raw))
    assert len(step.draw(3)) == 3
    assert len(step.draw(99)) == 24


def test_draws_are_independent_and_from_the_generator_given(loop: Loop) -> None:
    step = step_of(loop)
    first, second = step.draw(), step.draw()
    assert not torch.equal(first.slot, second.slot)
    a, b = (step.draw(generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(a.slot, b.slot)
    assert torch.equal(a.x, b.x)


def test_a_draw_from_an_empty_memory_is_falsy_and_draws_no_number(build: Build) -> None:
    loop = build("er")
    step = step_of(loop)
    before = step.generator("replay").get_state()
    assert not step.draw()
    assert torch.equal(step.generator("replay").get_state(), before)


def test_stream_rows_have_no_slot(loop: Loop) -> None:
    batch = stream_batch(step_of(loop))
    assert batch.slot.tolist() == [-1] * 8
    assert not batch.replayed.any()


@pytest.mark.parametrize(
    ("offer", "epoch", "stored"),
    [("every-epoch", 0, 8), ("every-epoch", 1, 8), ("once", 0.5, 8), ("once", 1, 0)],
)
def test_the_memory_is_offered_the_batch_once_the_step_is_done(
    loop: Loop, offer: str, epoch: float, stored: int
) -> None:
    deferred = Deferred(loop.network)
    step = step_of(loop, epoch=epoch, offer=offer, deferred=deferred)
    batch = stream_batch(step)
    step.store(batch, logits=torch.full((8, 6), 7.0))
    assert loop.memory.seen == 24
    deferred.run()
    assert loop.memory.seen == 24 + stored
    new = loop.memory.rows(torch.arange(24, 24 + stored))
    assert torch.equal(new["x"], batch.raw[:stored])
    assert (new["logits"] == 7).all()
    deferred.run()
    assert loop.memory.seen == 24 + stored  # each action runs once


def test_net_gives_the_networks_logits(loop: Loop) -> None:
    loop.network.eval()
    step = step_of(loop)
    batch = stream_batch(step)
    assert torch.equal(step.net(batch), loop.network(batch.x))


def test_a_pass_can_leave_the_statistics_alone(
    loop: Loop, differences: Callable[..., list[str]]
) -> None:
    loop.network.train()
    step = step_of(loop)
    batch = stream_batch(step)
    before = buffers(loop)
    quiet = step.net(batch, update_stats=False)
    assert not differences(buffers(loop), before)
    loud = step.net(batch)
    assert torch.equal(quiet, loud)  # normalised by the batch, either way
    assert differences(buffers(loop), before)


def test_a_probe_leaves_no_trace(build: Build, differences: Callable[..., list[str]]) -> None:
    loop = build("er", {"lider": {}})
    loop.network.train()
    (lider,) = loop.regularizers
    step = step_of(loop)
    batch = stream_batch(step)
    before, heard = buffers(loop), lider.state_dict()
    other = {name: p.detach() * 0.5 for name, p in loop.network.named_parameters()}
    changed = step.probe(batch.x, other)
    same = step.probe(batch.x)
    assert not differences(buffers(loop), before)
    assert not differences(lider.state_dict(), heard)
    assert lider.losses(step) == {}
    assert torch.equal(same, step.net(batch))
    assert torch.equal(changed, functional_call(loop.network, other, (batch.x,)))
    assert not torch.equal(changed, same)


def test_a_gradient_is_of_the_mean_and_leaves_grad_alone(loop: Loop) -> None:
    step = step_of(loop)
    batch = stream_batch(step)
    rows = cross_entropy(step.net(batch), batch.y)
    gradient = step.gradient(rows)
    assert all(p.grad is None for p in loop.network.parameters())
    rows.mean().backward()  # the graph is still there
    for name, parameter in loop.network.named_parameters():
        assert parameter.grad is not None
        assert torch.allclose(gradient[name], parameter.grad)


def test_inputs_of_random_rows(loop: Loop, stream: SplitStream) -> None:
    step = step_of(loop)
    data = stream.tasks[1].train
    normalise = stream.transform.sample(1, None)
    known = {bytes(x.numpy()) for x in normalise(data.rows(torch.arange(24))["x"])}

    def seen(limit: int | None, augmented: bool = False) -> list[bytes]:
        batches = step.inputs_of(data, torch.Generator(), limit=limit, augmented=augmented)
        return [bytes(x.numpy()) for batch in batches for x in batch]

    for limit in (10, 24, 1000, None):
        found = seen(limit)
        assert len(found) == len(set(found)) == min(limit or 24, 24)
        assert set(found) <= known
    assert len(seen(None, augmented=True)) == 24
    assert not set(seen(None, augmented=True)) <= known
