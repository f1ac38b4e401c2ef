"""The workloads do the work that they are timed for."""

import pytest
import torch

from liderlab.bench import workloads
from liderlab.runs.execute import deterministic
from liderlab.training.events import StepDone

SMALL = {"backbone": "convnet-small", "width": 8, "side": 8, "batch": 8, "memory": 40}


@pytest.mark.parametrize("draw", ["reuse", "fresh"])
def test_a_prepared_run_replays_from_its_first_step(draw) -> None:
    work = workloads.prepared_run(**SMALL, regularizers={"lider": {"draw": draw}})
    event = next(iter(work.loop))
    assert isinstance(event, StepDone)
    assert event.task.index == 1
    assert set(event.terms) == {"stream", "replay", "lider/c_lip", "lider/0_lip"}
    assert work.loop.memory.seen > len(work.stream.tasks[0].train)  # the step also inserts


@pytest.mark.parametrize("kind", ["loop", "bare"])
def test_steps_train(kind) -> None:
    work = workloads.prepared_run(**SMALL)
    step = workloads.loop_step(work) if kind == "loop" else workloads.bare_step(work, batch=8)
    before = [p.detach().clone() for p in work.loop.network.parameters()]
    for _ in range(2):
        step()
    after = list(work.loop.network.parameters())
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert work.loop.steps == (2 if kind == "loop" else 0)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_new_tensors_are_not_filled_before_they_are_computed(monkeypatch) -> None:
    """torch's deterministic mode does so by default, at a tenth of a narrow network's step."""
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    fills = []
    for filled in (False, True):
        with deterministic(True), torch.profiler.profile() as profile:
            torch.utils.deterministic.fill_uninitialized_memory |= filled
            torch.empty(8)
        fills.append(sum(event.name == "aten::fill_" for event in profile.events()))
    assert fills == [0, 1]


def test_computations_at_the_end_of_a_task_run() -> None:
    for name, action in (workloads.curvature(rows=3) | workloads.herding(30, 4, 5)).items():
        result = action()
        if name == "herding":
            assert len(set(result.tolist())) == 5
        if name == "olap":
            assert len(result) == 5
