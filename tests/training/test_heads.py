"""Which classes compete for a row, and networks that ask for a row's task."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from liderlab.methods import METHODS
from liderlab.training.heads import SHUT
from liderlab.training.loop import Loop, StepDone, TaskDone
from short_options import short_options


def logits_of_steps(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[int, Tensor, Tensor]]:
    """(task in training, logits, tasks of the rows) of every pass."""
    from liderlab.training.step import Step

    seen = []
    original = Step.net

    def net(self, batch, **how):  # type: ignore[no-untyped-def]
        logits = original(self, batch, **how)
        seen.append((self.task.index, logits.detach(), batch.task))
        return logits

    monkeypatch.setattr(Step, "net", net)
    for _ in loop:
        pass
    return seen


def test_the_head_grows_with_the_classes_seen(
    build: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = build("er", heads="seen", epochs=1)
    for now, logits, _ in logits_of_steps(loop, monkeypatch):
        seen = loop.stream.tasks[now].classes[-1] + 1
        assert (logits[:, :seen] > SHUT).all()
        assert (logits[:, seen:] == SHUT).all()


def test_every_task_has_a_head_of_its_own(
    build: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = build("er", heads="task", epochs=1)
    replayed = False
    for now, logits, task in logits_of_steps(loop, monkeypatch):
        for row, own in zip(logits, task.tolist(), strict=True):
            classes = list(loop.stream.tasks[own].classes)
            assert (row > SHUT).nonzero()[:, 0].tolist() == classes
            replayed = replayed or own < now
    assert replayed


def test_a_closed_output_is_one_that_does_not_exist(build: Callable[..., Loop]) -> None:
    """The first task of growing heads trains as a network without the later outputs would."""
    loop = build("finetune", heads="seen", epochs=1)
    head = next(m for m in reversed(list(loop.network.modules())) if isinstance(m, nn.Linear))
    before = head.weight.detach().clone()
    for event in loop:
        if isinstance(event, TaskDone):
            break
    known = len(loop.stream.tasks[0].classes)
    assert torch.equal(head.weight[known:], before[known:])
    assert not torch.equal(head.weight[:known], before[:known])


KINDS = [(m, kind) for m in METHODS for kind in METHODS.class_of(m).heads if kind != "all"]


@pytest.mark.parametrize(("method", "kind"), KINDS)
def test_every_method_trains_and_resumes_with_the_heads_it_allows(
    method: str, kind: str, build: Callable[..., Loop], differences: Callable[..., list[str]]
) -> None:
    def new() -> Loop:
        return build(method, heads=kind, epochs=1, options=short_options(method, 1))

    whole, first = new(), new()
    terms = [event.terms for event in whole if isinstance(event, StepDone)]
    assert all(bool(value.isfinite()) for values in terms for value in values.values())
    middle = len(terms) // 2
    for number, _ in enumerate(first):
        if number == middle:
            break
    resumed = new()
    resumed.load_state_dict(first.state_dict())
    for _ in resumed:
        pass
    assert differences(resumed.state_dict(), whole.state_dict()) == []


class TaskBias(nn.Module):
    """A readout that adds a bias of the row's task, and none where the task is not known."""

    asks_task = True

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.bias = nn.Embedding(tasks, 1)
        self.asked: list[bool] = []

    def forward(self, x: Tensor, task: Tensor | None = None) -> Tensor:
        self.asked.append(task is not None)
        return x if task is None else x + self.bias(task)


def test_a_rows_task_reaches_a_network_that_asks_for_it(build: Callable[..., Loop]) -> None:
    def ask(network: nn.Module) -> None:
        network.readout = TaskBias(3)

    loop = build("er", prepare=ask, epochs=1)
    for _ in loop:
        pass
    readout = loop.network.readout
    assert all(readout.asked)  # in training and in evaluation
    loop.network(torch.zeros(2, *loop.stream.image_shape))
    assert not readout.asked[-1]


@pytest.mark.parametrize(
    ("method", "heads", "allowed"),
    [("x-der-rpc", "seen", "choose all"), ("lwf", "task", "choose all or seen")],
)
def test_heads_that_a_method_cannot_have_are_refused(
    method: str, heads: str, allowed: str, lider: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, error = lider("run", "--method", method, "--heads", heads)
    assert code == 2
    assert f"cannot be trained with training.heads={heads}: {allowed}" in " ".join(error.split())
