"""LiDER's options that make its forms: where and when it calibrates, its order, its control."""

from collections.abc import Callable, Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from liderlab import LiDER
from liderlab.distributed.team import Team
from liderlab.training.loop import Loop, StepDone, TaskDone
from small_network import STAGES, by_hand, images, network

FRESH = {"draw": "fresh", "alpha": 0.2, "beta": 0.7}
ALL_AUGMENTED = {"calibration_rows": None, "calibration_augmented": True}
VARIANTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("er-ace", FRESH | ALL_AUGMENTED | {"order": "0-c", "learn_targets": False}, {}),
    ("er-ace", FRESH | {"control": True}, {}),
    ("der++", {"calibrate": "first-task", "rows_at_most": 3}, {}),
    ("icarl", {"on": "both"}, {}),
    ("gdumb", FRESH | {"calibration_data": "task"}, {"fit_epochs": 3, "optimizer_per": "epoch"}),
]


class Drawn:
    """A step that draws these inputs, one after the other."""

    team, memory = Team(), [1]

    def __init__(self, model: torch.nn.Module, draws: list[Tensor]) -> None:
        self.model, self.draws = model, draws

    def generator(self, name: str) -> str:
        return name

    def draw(self, generator: str) -> Any:
        x = self.draws.pop(0)
        return SimpleNamespace(x=x) if generator == "lider" else None

    def net(self, batch: Any) -> Tensor:
        return self.model(batch.x)


@pytest.mark.parametrize("order", ["c-0", "0-c"])
def test_the_first_term_draws_first(order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liderlab.regularizers.lider.all_rows", lambda batch: None)
    model = network().eval()
    lider = LiDER(model, STAGES, order=order, **FRESH)
    lider.calibrate([images(8, seed=1)])
    first, second = images(4, seed=2), images(3, seed=3)
    terms = lider.losses(Drawn(model, [first, second]))  # type: ignore[arg-type]
    for_c, for_0 = (first, second) if order == "c-0" else (second, first)
    expected = {
        "lider/c_lip": 0.2 * (by_hand(model, for_c) - lider.targets).abs().mean(1),
        "lider/0_lip": 0.7 * by_hand(model, for_0).mean(1),
    }
    torch.testing.assert_close(terms, expected)
    assert list(terms) == (list(expected) if order == "c-0" else list(expected)[::-1])


def steps(loop: Loop) -> Iterator[StepDone]:
    return (event for event in loop if isinstance(event, StepDone))


def test_a_control_moves_the_statistics_and_nothing_else(build: Callable[..., Loop]) -> None:
    """In training BatchNorm normalises by the batch, so that its statistics move no weight."""
    plain, control = build("er-ace"), build("er-ace", {"lider": FRESH | {"control": True}})
    terms = [[list(event.terms) for event in steps(loop)] for loop in (plain, control)]
    assert terms[0] == terms[1]
    for name, value in control.network.named_parameters():
        assert torch.equal(value, plain.network.get_parameter(name)), name
    means = [name for name, _ in plain.network.named_buffers() if name.endswith("running_mean")]
    for name in means:
        assert not torch.equal(control.network.get_buffer(name), plain.network.get_buffer(name))
    assert control.regularizers[0].readings()  # λ is logged all the same


def test_on_both_waits_for_the_memory(build: Callable[..., Loop]) -> None:
    loop = build("icarl", {"lider": {"on": "both"}})
    heard = {event.task.index: "lider/0_lip" in event.terms for event in steps(loop)}
    assert heard == {0: False, 1: True, 2: True}  # exemplars are chosen at a task's end


def test_targets_from_the_network_after_the_first_task(build: Callable[..., Loop]) -> None:
    options: dict[str, Any] = {"calibrate": "first-task", "calibration_rows": None}
    loop = build("er-ace", {"lider": options | {"learn_targets": False}})
    (lider,) = loop.regularizers
    heard: dict[int, set[str]] = {}
    for event in loop:
        if isinstance(event, StepDone):
            heard.setdefault(event.task.index, set()).update(event.terms)
            logged = any("/c/" in name for name in lider.readings())
            assert logged == (event.task.index > 0)
        elif event.task.index == 0:
            data = event.task.train.rows(torch.arange(len(event.task.train)))
            by_twin = LiDER(loop.network, lider.stages)
            by_twin.calibrate([loop.stream.transform.sample(1, None)(data["x"])])
            torch.testing.assert_close(lider.targets, by_twin.targets.detach())
    assert "lider/c_lip" not in heard[0]
    assert {"lider/c_lip", "lider/0_lip"} <= heard[1]


def test_late_targets_in_an_own_loop_wait_for_calibrate() -> None:
    model = network().eval()
    lider = LiDER(model, STAGES, alpha=0.2, beta=0.7, calibrate="first-task")
    for expected in ({"0_lip"}, {"c_lip", "0_lip"}):
        with lider.watch():
            model(images())
        assert lider.terms().keys() == expected
        lider.penalty()
        lider.calibrate([images(8, seed=1)])


class Calibrating:
    """A step that shows which data the regulariser calibrates on, and how."""

    def __init__(self) -> None:
        self.fit = SimpleNamespace(restart=True, data="fit")
        self.task = SimpleNamespace(train="task", index=0)
        self.asked: list[Any] = []

    def generator(self, name: str) -> str:
        return name

    def inputs_of(self, *given: Any, **how: Any) -> list[Tensor]:
        self.asked.append((*given, how))
        return [images(8)]


@pytest.mark.parametrize("rows", [256, None, 3000])
@pytest.mark.parametrize("augmented", [False, True])
@pytest.mark.parametrize("data", ["fit", "task"])
def test_calibration_takes_the_chosen_rows(rows: Any, augmented: bool, data: Any) -> None:
    options = {"calibration_rows": rows, "calibration_augmented": augmented}
    lider = LiDER(network(), STAGES, calibration_data=data, **options)
    step = Calibrating()
    lider.start(step)  # type: ignore[arg-type]
    assert step.asked == [(data, "lider", {"limit": rows, "augmented": augmented})]


@pytest.mark.parametrize(("method", "lider", "options"), VARIANTS)
def test_variants_resume_to_the_bit(
    method: str, lider: dict[str, Any], options: dict[str, Any], build: Any, differences: Any
) -> None:
    def new() -> Loop:
        return build(method, {"lider": lider}, options=options, epochs=1)

    whole, events = new(), 0
    for _ in whole:
        events += 1
    for stop in (1, events // 3, events - 2):
        begun = new()
        for _ in islice(begun, stop):
            pass
        resumed = new()
        resumed.load_state_dict(begun.state_dict())
        assert [isinstance(e, TaskDone) for e in resumed].count(True) > 0
        assert differences(resumed.state_dict(), whole.state_dict()) == []


def test_zero_weight_is_the_method_alone(build: Callable[..., Loop], differences: Any) -> None:
    for more in (ALL_AUGMENTED, {"draw": "fresh", "order": "0-c"}, {"calibrate": "first-task"}):
        ends = []
        for regularizers in ({}, {"lider": {"alpha": 0.0, "beta": 0.0, **more}}):
            loop = build("er-ace", regularizers, epochs=1)
            for _ in loop:
                pass
            ends.append({k: v for k, v in loop.state_dict().items() if k != "regularizers"})
        ends[1].pop("optimizer"), ends[0].pop("optimizer")  # it lists the targets
        assert differences(*ends) == []
