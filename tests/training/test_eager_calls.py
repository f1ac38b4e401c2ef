"""A run does not load torch's compiler, and its optimizers step as torch's own calls do."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from liderlab.training import eager_calls
from liderlab.training.eager_calls import MARK, eager_bookkeeping, eager_step

RUN = """
import sys
from liderlab.config.merging import make_config
from liderlab.runs.execute import run

training = {"epochs": 1, "batch_size": 16}
benchmark = {"name": "synthetic", "tasks": 2, "side": 8, "per_class": 16}
options = {"method": "er-ace", "benchmark": benchmark, "training": training}
run(make_config(options | {"regularizers": {"lider": {}}}), sys.argv[1])
print("torch._dynamo" in sys.modules)
"""


def test_a_run_does_not_load_the_compiler(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, str(tmp_path / "run")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-1] == "False"


@pytest.fixture
def unloaded(monkeypatch) -> None:
    """As in a process that has not loaded the compiler."""
    monkeypatch.setattr(eager_calls, "compiler_loaded", lambda: False)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
        (torch.optim.Adam, {}),
        (torch.optim.AdamW, {"weight_decay": 0.1}),
    ],
)
def test_steps_and_states_are_those_of_torch(kind, options) -> None:
    start = torch.randn(5, generator=torch.Generator().manual_seed(0))
    own, theirs = (start.clone().requires_grad_() for _ in range(2))
    with eager_bookkeeping():
        mine = kind([own], lr=0.1, **options)
    reference = kind([theirs], lr=0.1, **options)
    for _ in range(3):
        for weights in (own, theirs):
            weights.grad = None
            weights.pow(4).sum().backward()
        eager_step(mine)
        reference.step()
    assert torch.equal(own, theirs)
    assert own.requires_grad
    with eager_bookkeeping():
        saved = mine.state_dict()
        mine.load_state_dict(saved)
    assert repr(saved) == repr(reference.state_dict())


@pytest.mark.usefixtures("unloaded")
def test_hooks_of_an_optimizer_are_called() -> None:
    weights = torch.ones(2, requires_grad=True)
    optimizer, calls = torch.optim.SGD([weights], lr=0.1), []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    weights.sum().backward()
    eager_step(optimizer)
    assert calls == [1]


@pytest.mark.usefixtures("unloaded")
def test_hooks_of_all_optimizers_are_called() -> None:
    weights, calls = torch.ones(2, requires_grad=True), []
    optimizer = torch.optim.SGD([weights], lr=0.1)
    weights.sum().backward()
    hook = register_optimizer_step_post_hook(lambda *_: calls.append(1))
    try:
        eager_step(optimizer)
    finally:
        hook.remove()
    assert calls == [1]


@pytest.mark.usefixtures("unloaded")
def test_torch_is_left_as_it_was() -> None:
    inner = torch.optim.Optimizer.state_dict.__wrapped__
    with eager_bookkeeping():
        assert getattr(inner, MARK) is inner
    assert not hasattr(inner, MARK)
