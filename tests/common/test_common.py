"""Laws that hold for every method, alone and with every regulariser.

The registries say which there are: a new method or regulariser is covered once it has an entry.
Every pair is trained once. The law of resuming trains each pair a second time, so the gate tries it
on a cover of the pairs, and `make test-all` on all of them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch

from liderlab.config.compatibility import why_not
from liderlab.methods import METHODS
from liderlab.regularizers import REGULARIZERS
from liderlab.training.events import StepDone, TaskDone
from liderlab.training.loop import Loop
from liderlab.types import Concat, Recipe, State
from short_options import SMALL, short_options

TO_LEARN: dict[str, dict[str, Any]] = {
    "x-der-rpc": {"alpha": 0.5, "beta": 1.0},  # its defaults are for more steps than these
}
ONLY_CONSTRAINS = {"a-gem"}  # its memory adds no loss: it forgets nearly like finetuning here
OFF = {name: dict(REGULARIZERS.class_of(name).off) for name in REGULARIZERS}
NONE = "none"


PAIRS = [
    (method, regularizer)
    for method in METHODS
    for regularizer in (NONE, *REGULARIZERS)
    if regularizer == NONE or why_not(method, regularizer, {}) is None
]


def cover() -> set[tuple[str, str]]:
    """Every method alone, and every regulariser with two methods, which take turns."""
    chosen = {(method, NONE) for method in METHODS}
    for number, regularizer in enumerate(REGULARIZERS):
        hosts = [method for method, guest in PAIRS if guest == regularizer]
        for place in (number, number + len(hosts) // 2):
            chosen.add((hosts[place % len(hosts)], regularizer))
    return chosen


COVER = cover()
every_pair = pytest.mark.parametrize(("method", "regularizer"), PAIRS)
covering_pairs = pytest.mark.parametrize(
    ("method", "regularizer"),
    [pytest.param(*pair, marks=[] if pair in COVER else pytest.mark.slow) for pair in PAIRS],
)
every_method = pytest.mark.parametrize("method", METHODS)


@dataclass
class Finished:
    """A finished run to compare with: its events, terms and final state."""

    loop: Loop
    events: list[str]
    terms: list[State]
    sizes: list[int]
    start: dict[str, torch.Tensor]
    state: State


Runs = Callable[..., Loop]
Reference = Callable[[str, str], Finished]


@pytest.fixture(scope="module")
def new(build: Callable[..., Loop]) -> Runs:
    """A short run of a pair, not yet begun."""

    def new(method: str, regularizer: str) -> Loop:
        regularizers = {} if regularizer == NONE else {regularizer: SMALL.get(regularizer, {})}
        return build(method, regularizers, seed=7, options=short_options(method, 4))

    return new


@pytest.fixture(scope="module")
def reference(new: Runs) -> Reference:
    """The pair's run without interruption; every pair runs once for all tests."""

    @cache
    def run(method: str, regularizer: str) -> Finished:
        loop = new(method, regularizer)
        events: list[str] = []
        terms, sizes = [], []
        start = dict(network_parameters(loop))
        for event in loop:
            events.append(name_of(event))
            start = dict(regularizer_parameters(loop)) | start
            sizes.append(len(loop.memory))
            if isinstance(event, StepDone):
                terms.append(event.terms)
        return Finished(loop, events, terms, sizes, start, through_file(loop.state_dict()))

    return run


def name_of(event: StepDone | TaskDone) -> str:
    if isinstance(event, TaskDone):
        return f"task {event.task.index} done"
    return f"task {event.task.index} {event.fit.name} {event.epoch}.{event.batch}"


def network_parameters(loop: Loop) -> Iterator[tuple[str, torch.Tensor]]:
    """Copies of everything that the network and the method learn."""
    for owner, module in (("network", loop.network), ("method", loop.method)):
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                yield f"{owner}.{name}", parameter.detach().clone()


def regularizer_parameters(loop: Loop) -> Iterator[tuple[str, torch.Tensor]]:
    for i, regularizer in enumerate(loop.regularizers):
        for group in regularizer.param_groups():
            for j, parameter in enumerate(group["params"]):
                yield f"regularizer{i}.{j}", parameter.detach().clone()


def through_file(state: State) -> State:
    """The state as read back from a file with weights_only."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: State = torch.load(file, weights_only=True)
    return loaded


@every_pair
def test_every_term_is_finite(method: str, regularizer: str, reference: Reference) -> None:
    run = reference(method, regularizer)
    learned = [terms for terms in run.terms if terms]
    assert bool(learned) == (METHODS.class_of(method).trains != "nothing")
    for terms in learned:
        for name, value in terms.items():
            assert value.dim() == 0, name
            assert not value.requires_grad, name
            assert value.isfinite(), name


@pytest.fixture(scope="module")
def learned(build: Callable[..., Loop]) -> Callable[[str, str], float]:
    """Average accuracy over all classes, after a run that is long enough to learn something."""
    recipe = Recipe(lr=0.1, batch_size=8, replay_size=16)

    @cache
    def run(method: str, regularizer: str) -> float:
        regularizers = {} if regularizer == NONE else {regularizer: SMALL.get(regularizer, {})}
        options = short_options(method, 20) | TO_LEARN.get(method, {})
        loop = build(
            method, regularizers, options=options, width=16, size=30, epochs=8, recipe=recipe
        )
        if METHODS.class_of(method).trains != "all":
            take_statistics(loop)
        for _ in loop:
            pass
        return float(loop.evaluation.class_incremental[-1].mean())

    return run


@torch.no_grad()
def take_statistics(loop: Loop) -> None:
    """Let BatchNorm know the images, as that of a pre-trained backbone does: it stays frozen."""
    data = Concat(tuple(task.train for task in loop.stream.tasks))
    x = loop.stream.transform.sample(len(data), None)(data.rows(torch.arange(len(data)))["x"])
    body = deepcopy(loop.network.backbone).train()
    for _ in range(40):
        body(x)
    loop.network.backbone.load_state_dict(body.state_dict())


@pytest.mark.parametrize(
    ("method", "regularizer"), [(m, r) for m, r in PAIRS if r == NONE or m == "er"]
)
def test_it_learns(method: str, regularizer: str, learned: Callable[[str, str], float]) -> None:
    """Better than chance; with a memory, or with all data at once, also than without."""
    made = METHODS.class_of(method)
    sees_past = (made.rehearsal and method not in ONLY_CONSTRAINS) or not made.task_by_task
    floor = learned("finetune", NONE) if sees_past else 100 / 6
    assert learned(method, regularizer) > floor + 10  # of 48 test images, five more


@every_pair
def test_every_trained_parameter_moves(method: str, regularizer: str, reference: Reference) -> None:
    run = reference(method, regularizer)
    end = dict(network_parameters(run.loop)) | dict(regularizer_parameters(run.loop))
    assert end.keys() == run.start.keys()
    still = [name for name, value in end.items() if torch.equal(value, run.start[name])]
    assert not still


@every_pair
def test_the_memory_never_exceeds_its_size(
    method: str, regularizer: str, reference: Reference
) -> None:
    run = reference(method, regularizer)
    memory = run.loop.memory
    assert max(run.sizes) <= memory.size
    assert all(len(column) == memory.size for column in memory.data.values())
    if METHODS.class_of(method).rehearsal:
        assert len(memory) > memory.size - len(run.loop.stream.names)  # it is filled
        labels = memory.data["y"][: len(memory)]
        assert ((labels >= 0) & (labels < len(run.loop.stream.names))).all()
    else:
        assert memory.size == 0


@every_method
def test_the_same_run_again_is_the_same_to_the_bit(
    method: str, new: Runs, reference: Reference, differences: Callable[..., list[str]]
) -> None:
    torch.manual_seed(12345)  # the state of torch's own generator must not matter
    loop = new(method, NONE)
    events = [name_of(event) for event in loop]
    expected = reference(method, NONE)
    assert events == expected.events
    assert not differences(through_file(loop.state_dict()), expected.state)


@covering_pairs
def test_it_resumes_to_the_bit_from_any_point(
    method: str,
    regularizer: str,
    new: Runs,
    reference: Reference,
    differences: Callable[..., list[str]],
) -> None:
    """Left after every fifth event and after every task, and taken up by new objects each time.

    (The uninterrupted run beside it also shows that the same run again is the same.)
    """
    loop = new(method, regularizer)
    events: list[str] = []
    while True:
        for event in loop:
            events.append(name_of(event))
            if len(events) % 5 == 0 or isinstance(event, TaskDone):
                break
        else:
            break
        state = through_file(loop.state_dict())
        loop = new(method, regularizer)
        torch.manual_seed(len(events))
        loop.load_state_dict(state)
        assert not differences(loop.state_dict(), state)
    expected = reference(method, regularizer)
    assert events == expected.events
    assert not differences(through_file(loop.state_dict()), expected.state)


@every_method
def test_regularizers_at_zero_weight_leave_the_method_as_it_was(
    method: str,
    build: Callable[..., Loop],
    reference: Reference,
    differences: Callable[..., list[str]],
) -> None:
    """Weights, memory, generators and accuracies are those of the run without them, to the bit."""
    loop = build(method, OFF, seed=7, options=short_options(method, 4))
    events = [name_of(event) for event in loop]
    expected = reference(method, NONE)
    assert events == expected.events
    state = through_file(loop.state_dict())
    own = ("regularizers", "optimizer")
    for part in (name for name in state if name not in own):
        assert not differences(state[part], expected.state[part]), part
    assert not differences(state["optimizer"]["state"], expected.state["optimizer"]["state"])
