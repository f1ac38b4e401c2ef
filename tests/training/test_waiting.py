"""No step reads a value of the device: operations for which the host would wait are refused here.

On the CPU everything is on one device, so bookkeeping on the host must do without such reads, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from liderlab.config.compatibility import why_not
from liderlab.training.events import StepDone
from liderlab.training.learner import Learner, NotFinite
from liderlab.training.loop import Loop
from liderlab.types import Recipe

Build = Callable[..., Loop]
READS = {
    "_local_scalar_dense",
    "item",
    "nonzero",
    "is_nonzero",
    "masked_select",
    "equal",
    "_unique2",
}
NEVER = 10**9


class NoReads(TorchDispatchMode):
    """Refuses operations for which the host waits for the device."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        masks = name in ("index", "index_put", "index_put_") and any(
            part is not None and part.dtype in (torch.bool, torch.uint8) for part in args[1]
        )
        if name in READS or masks:
            raise AssertionError(f"the step waits for the device: {func}")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("method", ["finetune", "er", "er-ace", "der", "der++", "gmed"])
@pytest.mark.parametrize(
    "regularizers",
    [{}, {"lider": {"tol": 0.0}, "oewc": {}, "olap": {}, "ssgd": {}}, {"spectral": {}, "star": {}}],
    ids=["alone", "paper's", "later"],
)
def test_no_step_waits(build: Build, method: str, regularizers: Any) -> None:
    if method == "finetune":
        regularizers = {n: o for n, o in regularizers.items() if why_not(method, n, {}) is None}
        if regularizers and "spectral" not in regularizers:
            regularizers["lider"] = {"tol": 0.0, "on": "stream"}
    loop = build(method, regularizers, look_every=NEVER)
    train_on, steps = loop._train_on, 0

    def watched(*args: Any) -> Any:
        with NoReads():
            return train_on(*args)

    loop._train_on = watched  # type: ignore[method-assign]
    for event in loop:
        steps += isinstance(event, StepDone)
    assert steps == loop.steps > 12


def test_a_run_that_waits_is_refused(build: Build) -> None:
    """With a check at every step the same run is refused."""
    loop = build("er")
    train_on = loop._train_on

    def watched(*args: Any) -> Any:
        with NoReads():
            return train_on(*args)

    loop._train_on = watched  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="waits for the device"):
        next(iter(loop))


def test_an_unchecked_step_is_found_by_a_later_check() -> None:
    network = torch.nn.Linear(2, 1)
    learner = Learner(network, torch.nn.Identity(), [], look_every=3)
    learner.start(Recipe(lr=0.1))

    def step(factor: float) -> None:
        learner.step({"loss": factor * network(torch.ones(4, 2)).square().mean()})

    step(1.0)
    step(float("nan"))
    with pytest.raises(NotFinite, match="not finite"):
        step(1.0)
    learner.check()  # raised once
    step(float("inf"))
    with pytest.raises(NotFinite, match="gradient is not finite"):
        learner.check()


def test_no_checkpoint_of_a_non_finite_network(build: Build) -> None:
    loop = build("er", look_every=NEVER, recipe=Recipe(lr=1e30, batch_size=8, replay_size=8))
    with pytest.raises(NotFinite):
        _ = [loop.state_dict() for _ in loop]


def test_rare_checks_change_nothing(build: Build, differences: Callable[..., list[str]]) -> None:
    each = [build("er", {"lider": {}}, look_every=n) for n in (1, 4, NEVER)]
    for loop in each:
        for _ in loop:
            pass
    assert not differences(each[1].state_dict(), each[0].state_dict())
    assert not differences(each[2].state_dict(), each[0].state_dict())
